"""Memory construction in bulk: Ray Data jobs over the stages of `pipelines`. Nothing else in pipelines imports Ray."""
