// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The two namespaces that are compared, and the label that differs. All other objects are in background, unjudged.
const (
	label      = "bench.example.com/webhook"
	ours, noop = "ours", "noop"
	background = "background"
)

// replicas is how many webhooks a block has to reach. The first is the one that is asked.
const replicas = 3

// env is what is measured in.
type env struct {
	fleet    *fleet.Fleet
	charts   *charts.Repository
	client   client.WithWatch
	replicas []*pod.Replica
	noop     *exec.Cmd
	dir      string
	blocks   int
	writes   [concurrency]int    // to each Application
	moved    map[string][]string // Releases by namespace
}

// begin starts an API server and all webhooks. Started processes are returned also with an error.
func begin(ctx context.Context) (*env, error) {
	w := &env{}
	var err error
	if w.dir, err = os.MkdirTemp("", "shipper-bench-"); err != nil {
		return w, err
	}
	w.fleet, err = fleet.Start(ctx, fleet.Options{
		CRDs: []string{"manifests/crd"}, Dir: filepath.Join(w.dir, "fleet"), Progress: os.Stdout,
	})
	if err != nil {
		return w, err
	}
	if w.charts, err = charts.Start(); err != nil {
		return w, err
	}
	config := rest.CopyConfig(w.fleet.Management.Config)
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	err = errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		return w, err
	}
	if w.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return w, err
	}
	for _, name := range []string{ours, noop, background} { // noop all of them, until Releases are made
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: noop}}}
		if err := w.client.Create(ctx, ns); err != nil {
			return w, err
		}
	}
	return w, w.install(ctx)
}

// install installs Shipper's webhooks, and the other one beside them.
func (w *env) install(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", w.dir+"/", "./cmd/shipper-webhook")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the webhook: %w\n%s", err, out)
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	install := &install.Management{
		Client: w.client, Report: install.NewReport(io.Discard), Namespace: shipper.SystemNamespace,
		GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, ServiceAccount: shipper.ManagementServiceAccount,
		WebhookURL: &url.URL{Scheme: "https", Host: fmt.Sprintf("localhost:%d", port)}, Patience: install.DefaultPatience,
	}
	if err := install.Setup(ctx); err != nil {
		return err
	}
	kubeconfig, err := w.fleet.Management.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return err
	}
	for i := range replicas {
		r, err := pod.StartReplica(w.dir, w.dir, fmt.Sprintf("replica-%d", i), kubeconfig)
		if err != nil {
			return err
		}
		w.replicas = append(w.replicas, r)
	}
	for _, r := range w.replicas {
		if err := r.AwaitReady(ctx); err != nil {
			return err
		}
	}
	install.WebhookURL.Host = "localhost" + w.replicas[0].Address[strings.LastIndex(w.replicas[0].Address, ":"):]
	if err := install.Setup(ctx); err != nil {
		return err
	}
	if err := install.SetFailurePolicy(ctx); err != nil {
		return err
	}
	return w.installNoop(ctx)
}

// installNoop starts the other webhook, with the certificate of Shipper's, and points copies of all webhooks at it.
func (w *env) installNoop(ctx context.Context) error {
	var secret corev1.Secret
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: shipper.SystemNamespace, Name: "shipper-webhook-cert"}, &secret); err != nil {
		return err
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(w.dir, name), secret.Data[name], 0o600); err != nil {
			return err
		}
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.noop = exec.Command(self, NoopCommand, fmt.Sprintf("127.0.0.1:%d", port), w.dir)
	w.noop.Stderr = os.Stderr
	w.noop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.noop.Start(); err != nil {
		return err
	}
	base := fmt.Sprintf("https://localhost:%d", port)
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	key := client.ObjectKey{Name: shipper.GroupName}
	if err := errors.Join(w.client.Get(ctx, key, validating), w.client.Get(ctx, key, mutating)); err != nil {
		return err
	}
	otherV, otherM := validating.DeepCopy(), mutating.DeepCopy()
	otherV.ObjectMeta, otherM.ObjectMeta = metav1.ObjectMeta{Name: "noop.example.com"}, metav1.ObjectMeta{Name: "noop.example.com"}
	otherV.Webhooks = slices.DeleteFunc(otherV.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
		return strings.HasPrefix(h.Name, "cluster.") || strings.HasPrefix(h.Name, "collected.") || strings.HasPrefix(h.Name, "namespace.")
	})
	for i := range otherV.Webhooks {
		err = errors.Join(err, lead(&otherV.Webhooks[i].ClientConfig, base))
		share(otherV.Webhooks[i].NamespaceSelector, metav1.LabelSelectorOpIn)
	}
	for i := range otherM.Webhooks {
		err = errors.Join(err, lead(&otherM.Webhooks[i].ClientConfig, base))
		share(otherM.Webhooks[i].NamespaceSelector, metav1.LabelSelectorOpIn)
	}
	return errors.Join(err, w.client.Create(ctx, otherV), w.client.Create(ctx, otherM), w.shareWebhooks(ctx), w.withoutPolicy(ctx))
}

// shareWebhooks leaves namespaces to the other webhook. Shipper's may write the secret path into its own at the same time.
func (w *env) shareWebhooks(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
		key := client.ObjectKey{Name: shipper.GroupName}
		if err := errors.Join(w.client.Get(ctx, key, validating), w.client.Get(ctx, key, mutating)); err != nil {
			return err
		}
		for i := range validating.Webhooks {
			unshare(validating.Webhooks[i].NamespaceSelector)
			share(validating.Webhooks[i].NamespaceSelector, metav1.LabelSelectorOpNotIn)
		}
		for i := range mutating.Webhooks {
			unshare(mutating.Webhooks[i].NamespaceSelector)
			share(mutating.Webhooks[i].NamespaceSelector, metav1.LabelSelectorOpNotIn)
		}
		if err := w.client.Update(ctx, validating); err != nil {
			return err
		}
		return w.client.Update(ctx, mutating)
	})
}

// withoutPolicy takes the API server's own policy away: it would slow down both sides alike, and flatter ours.
func (w *env) withoutPolicy(ctx context.Context) error {
	return w.client.DeleteAllOf(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{})
}

// lead leads one webhook to the server at base, with the path that it has in the manifests.
func lead(c *admissionregistrationv1.WebhookClientConfig, base string) error {
	if c.URL == nil {
		return errors.New("a webhook has no URL")
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return err
	}
	_, _, hook := reviewpath.Split(u.Path)
	to := base + hook
	c.URL = &to
	return nil
}

// unshare takes what share has added out of a selector.
func unshare(s *metav1.LabelSelector) {
	if s != nil {
		s.MatchExpressions = slices.DeleteFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == label })
	}
}

// share adds to a selector which side of the comparison it is for.
func share(s *metav1.LabelSelector, op metav1.LabelSelectorOperator) {
	if s != nil {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: label, Operator: op, Values: []string{noop}})
	}
}

// divide gives Shipper's webhooks their namespace, once all is made.
func (w *env) divide(ctx context.Context) error {
	ns := &corev1.Namespace{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: ours}, ns); err != nil {
		return err
	}
	ns.Labels[label] = ours
	if err := w.client.Update(ctx, ns); err != nil {
		return err
	}
	return w.await(ctx, func() (bool, error) { return w.judged(ctx) })
}

// await asks until it is so.
func (w *env) await(ctx context.Context, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if is, err := so(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end ends all that was started.
func (w *env) end() error {
	for _, r := range w.replicas {
		r.Kill()
	}
	if w.noop != nil && w.noop.Process != nil {
		_ = w.noop.Process.Kill()
		_ = w.noop.Wait()
	}
	if w.charts != nil {
		w.charts.Close()
	}
	var err error
	if w.fleet != nil {
		err = w.fleet.Stop()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}
