module kcm.dev/kcmtest

go 1.22
