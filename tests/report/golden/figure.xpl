dtime double
title
a title?line 2
xlabel
time (s)
ylabel
window (segments)
blue
line 0.000000000 10 1.000000000 10
blue
dot 0.500000000 1.25
blue
line 0.000000000 1 1.000000000 1
line 0.000000000 2 1.000000000 2
line 1.000000000 2 1.000000000 3
blue
utick 1.000000000 0
atext 1.000000000 0
*
blue
dtick 2.000000000 20
atext 2.000000000 20
*
go
