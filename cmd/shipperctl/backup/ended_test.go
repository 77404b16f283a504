// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTellsOfCredentialsThatHaveEnded(t *testing.T) {
	entry := func(name, claims string) Entry {
		token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
		cluster, secret := &object{}, &object{Object: map[string]any{
			"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))},
		}}
		cluster.SetName(name)
		return Entry{Cluster: cluster, ClusterSecret: secret}
	}
	var out strings.Builder
	b := Backup{entry("old", `{"iat":1,"exp":1000}`), entry("new", `{"iat":1,"exp":3000}`), entry("endless", `{}`), {Cluster: &object{}}}
	b.printEnded(&out, time.Unix(2000, 0))
	const want = "Note: credentials in the backup have ended: old (token, 1970-01-01T00:16:40Z). Run `shipperctl clusters join`, which " +
		"makes " +
		"tokens that are good; for a client certificate delete its Secret before, or put another one into it\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	out.Reset()
	b.printEnded(&out, time.Unix(500, 0))
	if out.Len() > 0 {
		t.Errorf("for valid credentials it prints %s", out.String())
	}
}
