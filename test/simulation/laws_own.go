// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/memory"
)

// watchesReturn is how long after a fault client-go may take to begin a watch again that the fault has ended. Lists do not wait for it.
const watchesReturn = time.Minute

// ownWrite is the last write of a process to an object of which it read the answer.
type ownWrite struct {
	version int64
	at      time.Time
}

// answered judges law 11 in the management cluster: a process does not plan by an object that is older than its own last write of it. It
// also judges that writes change something, part of law 7. It is called when a process has read the answer of a request.
func (l *laws) answered(c *Client, s *sent, r *http.Request, body []byte, response *http.Response) {
	if response == nil || !isReconciler(c.process) || !counts(r) || r.Method == http.MethodGet {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.effects[s]
	delete(l.effects, s)
	patched := (r.Method == http.MethodPatch || r.Method == http.MethodPut) && r.URL.Query().Get("dryRun") == ""
	if response.StatusCode < http.StatusMultipleChoices && patched && !changed && l.world.plan.quiet() {
		l.offend(7, "%s writes what is there already: %s %s %s", c.process, r.Method, r.URL, body)
	}
	if r.URL.Host != management || !patched {
		return
	}
	key := r.URL.Path // a status is another object: it is written by others
	last := l.own[c][key]
	switch {
	case response.StatusCode == http.StatusConflict:
		if based := version(body); based > 0 && based < last.version && s.at.After(last.at) &&
			!l.world.Network.cutOff(management, c.process, watchesReturn) {
			l.offend(11, "%s plans by version %d of %s, and has itself written version %d before", c.process, based, key, last.version)
		}
	case response.StatusCode < http.StatusMultipleChoices:
		if l.own[c] == nil {
			l.own[c] = map[string]ownWrite{}
		}
		l.own[c][key] = ownWrite{version: version(written(response)), at: time.Now()}
	}
}

// quiet reports whether nothing disturbs a story.
func (p Plan) quiet() bool {
	return !p.KillEvery && len(p.KillAt) == 0 && len(p.Faults) == 0
}

// version is the resourceVersion of an object or a patch; 0 if there is none.
func version(raw []byte) int64 {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return 0
	}
	n, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// written is the object in an answer, which is read again by the process.
func written(response *http.Response) []byte {
	var b bytes.Buffer
	_, _ = b.ReadFrom(response.Body) // of a buffer
	response.Body = nopCloser{bytes.NewReader(b.Bytes())}
	return b.Bytes()
}

// nopCloser is a body that is in memory.
type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// persists judges a part of law 3: what a block forbids is not even asked for, some time after the reconciler has seen the block.
func (l *laws) persists(r *memory.Review, response *admissionv1.AdmissionResponse) {
	s := sentBy(r.Request.Context())
	if s == nil || !isReconciler(s.process()) || response.Result == nil || response.Result.Code != http.StatusForbidden {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.world.Network.calm(s.process(), mostStale) {
		return
	}
	for _, o := range l.world.hosts[management].all(kindOf("rolloutblocks")) {
		var b shipper.RolloutBlock
		convert(o, &b)
		since := l.seen[s.process()][b.Name]
		if since.IsZero() || s.at.Sub(since) < mostStale || !block.Active(&b, s.at.Add(-mostStale)) ||
			!strings.Contains(response.Result.Message, b.Name) {
			continue
		}
		l.offend(3, "%s asks for what block %s forbids, %s after it saw it: %s %s %s", s.process(), b.Name, s.at.Sub(since), r.Operation,
			r.Kind.Resource, r.Name)
	}
}
