// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

func TestATextWithASelectorThatIsNotRestrictedIsRefused(t *testing.T) {
	tenant := &labels.Matcher{Type: labels.MatchEqual, Name: "namespace", Value: "a"}
	for query, want := range map[string]bool{
		`up{namespace="a"}`:                             true,
		`up{namespace="a"} or up`:                       false,
		`up{namespace=~"a"}`:                            false,
		`up{namespace="b"}`:                             false,
		`topk(scalar(up), up{namespace="a"})`:           false,
		`rate(up[5m])`:                                  false,
		`up # {namespace="a"}`:                          false,
		`max_over_time(up{namespace="a"}[1h:1m])`:       true,
		`max_over_time((up or up{namespace="a"})[1h:])`: false,
		`label_replace(up, "namespace", "a", "", "")`:   false,
		`up{namespace="a"}))`:                           false,
	} {
		if err := verify(query, tenant); (err == nil) != want {
			t.Errorf("%s gives %v", query, err)
		}
	}
}
