[("", "nothing yet")]
