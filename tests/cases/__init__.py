"""Labelled cases: small traces of one fault or one look-alike each; `make accuracy` scores the detectors on them."""
