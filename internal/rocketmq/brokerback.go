package rocketmq

// brokerBack hears that a broker is connected again, and tells the groups.
func (c *Client) brokerBack(addr string) {
	var names []string
	for _, to := range c.routes.all() {
		if to.Addr == addr {
			names = append(names, to.Name)
		}
	}
	for _, spec := range c.groups.all() {
		if spec.OnBrokerBack == nil {
			continue
		}
		c.calls.enter()
		go func() {
			defer c.calls.leave()
			for _, name := range names {
				spec.OnBrokerBack(name)
			}
		}()
	}
}
