package wire

// Fingerprint returns what heartbeatFingerprint holds for h in a version 2 heartbeat: the hash of its text without what
// differs between members or changes with time (remoting-protocol.md 2.4). It depends on the order of the lists.
func (h *HeartbeatData) Fingerprint() (int32, error) {
	c := *h
	c.ClientID, c.HeartbeatFingerprint, c.WithoutSub = "", 0, false
	c.ConsumerDataSet = make([]ConsumerData, len(h.ConsumerDataSet))
	for i, d := range h.ConsumerDataSet {
		subs := make([]SubscriptionData, len(d.SubscriptionDataSet))
		copy(subs, d.SubscriptionDataSet)
		for j := range subs {
			subs[j].SubVersion = 0
		}
		d.SubscriptionDataSet = subs
		c.ConsumerDataSet[i] = d
	}
	text, err := EncodeBody(&c, Standard)
	if err != nil {
		return 0, err
	}
	return TagHash(string(text)), nil
}
