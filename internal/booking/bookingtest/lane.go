package bookingtest
var laneTests, checkoutTests, moneyTests, loopTests []engineTest
