// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/test/charts"
)

// direct speaks to replicas without an API server in between. Whose certificate they have is not what it is for.
var direct = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	ForceAttemptHTTP2: true,
}}

// Replica is one webhook of several.
type Replica struct {
	*Process
	// Address is where it serves admission.
	Address string

	health string // URL
}

// StartReplica starts the webhook of the folder bin as name, with the credentials of kubeconfig, and returns at once. Its
// log and its caches are in dir.
func StartReplica(bin, dir, name, kubeconfig string, flags ...string) (*Replica, error) {
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = FreePort(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for %s: %w", name, err)
	}
	r := &Replica{Address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	health := fmt.Sprintf("127.0.0.1:%d", ports[1])
	r.health = "http://" + health
	var err error
	r.Process, err = start(name, filepath.Join(bin, "shipper-webhook"), filepath.Join(dir, name+".log"), append([]string{
		"--kubeconfig", kubeconfig, "--addr", r.Address, "--health-addr", health, "--metrics-addr", "0",
		"--extra-dns-names", "localhost", charts.Flag, "--chart-cache-dir", filepath.Join(dir, name+"-charts"),
	}, flags...)...)
	return r, err
}

// AwaitReady returns once its readiness probe succeeds.
func (r *Replica) AwaitReady(ctx context.Context) error {
	return r.ready(ctx, (&Pod{}).progressf, r.health+"/readyz")
}

// Ready reports whether its readiness probe succeeds.
func (r *Replica) Ready(ctx context.Context) bool { return answers(ctx, r.health+"/readyz") == nil }

// Terminate asks it to end, as a kubelet does, and returns at once.
func (r *Replica) Terminate() { _ = r.current().Signal(syscall.SIGTERM) } // an error means that it has ended

// Exited is closed when it has ended.
func (r *Replica) Exited() <-chan struct{} { return r.current().Done() }

// Review asks it itself, at path, as an API server does.
func (r *Replica) Review(
	ctx context.Context, path string, request *admissionv1.AdmissionRequest,
) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a review: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Address+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", r.Name, err)
	}
	post.Header.Set("Content-Type", "application/json")
	answer, err := direct.Do(post)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", r.Name, err)
	}
	defer answer.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("%s answered %s: %w", r.Name, answer.Status, err)
	}
	return review.Response, nil
}
