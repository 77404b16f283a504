// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// untyped starts what API servers answer, with code 500, to server-side apply of an object that does not fit the schema of its kind.
const untyped = "failed to create typed patch object"

// Invalid reports whether an API server refuses an object for what is in it.
func Invalid(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError && strings.HasPrefix(status.Status().Message, untyped)
}

// Rejected reports whether an API server refuses an object for what is in it, or by a policy or a quota. The account may lack a right, too.
func Rejected(err error) bool {
	return Invalid(err) || apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// fixed matches what API servers say of a field that cannot change.
var fixed = regexp.MustCompile(`immutable|may not (be changed|change)|(cannot|can not|must not) (be )?change|` +
	`pdates to .* (are )?forbidden`)

// Immutable reports whether an API server refuses to change fields of an object that is there. Values that it quotes may hold any text.
func Immutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	if details := status.Status().Details; details != nil && len(details.Causes) > 0 {
		return slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
			return fixed.MatchString(behindValue(cause.Message))
		})
	}
	return fixed.MatchString(err.Error())
}

// quoted starts a value that an API server quotes; what is wrong with it follows.
const quoted = "Invalid value: "

// maxValue bounds such a value in a long message, in bytes.
const maxValue = 100

// behindValue is what the message of a cause says behind the value that it quotes; all of it if it quotes none.
func behindValue(message string) string {
	kind, value, _ := strings.Cut(message, ": ")
	text, err := strconv.QuotedPrefix(value)
	switch end := max(strings.LastIndex(value, "}: "), strings.LastIndex(value, "]: "), strings.LastIndex(value, `": `)); {
	case err == nil:
		return value[len(text):]
	case kind+": " != quoted:
		return message
	case end >= 0:
		return value[end+1:]
	default: // a number, for example
		return value[max(strings.Index(value, ": "), 0):]
	}
}

// withoutValues is the message of err without the large values that an API server quotes in it: the template of a Job may have kilobytes,
// and what is wrong with it follows behind.
func withoutValues(err error) string {
	text := err.Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return text
	}
	for _, cause := range status.Status().Details.Causes {
		value, found := strings.CutPrefix(cause.Message, quoted)
		behind := behindValue(cause.Message)
		if !found || len(value)-len(behind) <= maxValue || len(behind) >= MaxBrief/2 {
			continue
		}
		text = strings.Replace(text, cause.Message, quoted+"…"+behind, 1)
	}
	return text
}
