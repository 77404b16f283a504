// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
)

// urlKey is the key of a receiver's URL in its Secret, besides those of outward.Credentials.
const urlKey = "url"

// requestTimeout bounds one request.
const requestTimeout = 10 * time.Second

// wording is what errors say of URLs that nothing is sent to. It quotes no path: that is often the secret.
var wording = outward.Wording{
	NotListed: func(_ outward.Policy, u *url.URL) string { return notListed(u) },
	NotThere:  "which nothing is sent to",
}

func notListed(u *url.URL) string {
	return fmt.Sprintf("the URL is not in --outgoing-urls: %s://%s; an administrator of Shipper can add it", u.Scheme, u.Host)
}

// failure is the error of an attempt. Its message has neither the URL nor the token.
type failure struct {
	reason, message string
	// final is true when another attempt with the same message would fail, too.
	final bool
	// after is how long the server wants no other attempt.
	after time.Duration
}

// Error is the message.
func (f *failure) Error() string { return f.message }

func failed(format string, args ...any) *failure {
	return newFailure(shipper.DeliveryFailed, format, args...)
}

func newFailure(reason, format string, args ...any) *failure {
	return &failure{reason: reason, message: fmt.Sprintf(format, args...)}
}

// receiver is the server of a Notification. It must not be shown.
type receiver struct {
	url    string
	client *http.Client
}

// receiver reads the Secret of a Notification, and checks its URL.
func (r *Reconciler) receiver(ctx context.Context, n *shipper.Notification) (*receiver, *failure) {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: n.Namespace, Name: n.Spec.To.SecretName}
	err := r.secrets.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, newFailure(shipper.SecretMissing, "there is no Secret %s", key)
	case apierrors.IsForbidden(err):
		return nil, newFailure(shipper.SecretForbidden, "Shipper may not read Secret %s; the owner of the namespace may let it read the "+
			"Secrets there: %s", key, shipper.BindCommand(shipper.NamespaceReader, key.Namespace))
	case err != nil:
		return nil, failed("reading Secret %s: %s", key, apierrors.ReasonForError(err))
	}
	raw := strings.TrimSpace(string(secret.Data[urlKey]))
	if raw == "" {
		return nil, newFailure(shipper.SecretInvalid, "Secret %s has no key %s", key, urlKey)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, newFailure(shipper.SecretInvalid, "key %s of Secret %s is not a URL", urlKey, key)
	case r.urls == nil:
		return nil, newFailure(shipper.URLNotAllowed, "Secret %s: %s", key, notListed(u))
	}
	policy := r.urls.Worded(wording)
	if err := policy.Check(u); err != nil {
		return nil, newFailure(shipper.URLNotAllowed, "Secret %s: %s", key, err)
	}
	client, err := outward.NewClient(policy, outward.Credentials{
		CA: secret.Data[outward.CAKey], Token: strings.TrimSpace(string(secret.Data[outward.TokenKey])),
	})
	if err != nil {
		return nil, newFailure(shipper.SecretInvalid, "Secret %s %s", key, err)
	}
	return &receiver{url: raw, client: client}, nil
}

// close ends its connections.
func (to *receiver) close() { to.client.CloseIdleConnections() }

// post sends a message. The answer's body is not read: nothing of it may be shown.
func (to *receiver) post(ctx context.Context, m message, timeout time.Duration, now time.Time) *failure {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(m.content))
	if err != nil {
		return failed("the URL cannot be requested")
	}
	request.Header.Set("Content-Type", m.contentType)
	request.Header.Set("User-Agent", "shipper")
	response, err := to.client.Do(request)
	if err != nil {
		reason := shipper.DeliveryFailed
		if _, denied := errors.AsType[*outward.Denied](err); denied {
			reason = shipper.URLNotAllowed
		}
		return newFailure(reason, "the server cannot be reached: %s", outward.Show(err))
	}
	defer response.Body.Close()
	return classifyResponse(response, now)
}

// classifyResponse returns nil if the server accepted the message.
func classifyResponse(response *http.Response, now time.Time) *failure {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	f := failed("the server answers %s", strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status))))
	switch {
	case status >= 300 && status < 400:
		f.message += "; redirects are not followed"
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		f.final = true
	}
	f.after = retryAfter(response.Header.Get("Retry-After"), now)
	return f
}

// retryAfter is a Retry-After header, in seconds or as a date; 0 without one.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, giveUpAfter)
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return min(at.Sub(now), giveUpAfter)
	}
	return 0
}
