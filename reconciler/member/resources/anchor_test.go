// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestAnAnchorHasRoomFor4000Entries has what is listed while 2,000 objects are replaced by as many, in 20 namespaces.
func TestAnAnchorHasRoomFor4000Entries(t *testing.T) {
	long := func(text string, i int) string {
		return text + strings.Repeat("x", 63-len(text)-4) + fmt.Sprintf("%04d", i)
	}
	want := []entry{{APIVersion: "v1", Kind: "Namespace", Name: "work", UID: "u"}, {APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "v"}}
	for i := range 4000 {
		want = append(want, entry{
			APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: long("team", i/200), Name: long("app", i),
			UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), Digest: strings.Repeat("a", 2*digestBytes), At: 1_764_129_000,
		})
	}
	text, err := encodeInventory(want)
	if err != nil || len(text) > 900<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got, err := decodeInventory(text)
	same(t, "error", nil, err)
	same(t, "entries", want, got)
	var whole []struct{ APIVersion, Kind, Name string } // as reconcilers of charts read it
	if err := json.Unmarshal([]byte(text), &whole); err != nil || whole[1].Kind != "Namespace" || whole[1].APIVersion != "v1" {
		t.Errorf("%v, %+v", err, whole[1])
	}
	if _, err := decodeInventory(`[{"name": "a"}]`); err == nil {
		t.Error("an entry without a kind is read")
	}
}

func TestAWrittenAnchorFindsItsEntries(t *testing.T) {
	f := begin(t)
	task := f.task(f.release(0, "one"))
	e := entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "work", Name: "a", Digest: "d"}
	written, err := task.writeAnchor(t.Context(), nil, task.by([]entry{e}, ""))
	f.must(err)
	same(t, "entry", &e, written.find(e.key()))
}
