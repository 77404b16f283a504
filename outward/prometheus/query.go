// SPDX-License-Identifier: Apache-2.0

// Package prometheus measures one number by a query.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"shipper.dev/shipper/outward"
)

// maxMessage bounds the bytes of an error of the server.
const maxMessage = 200

var errNotPrometheus = errors.New("the answer is not one of Prometheus")

// info starts what Prometheus before 3.0 puts among its warnings, though it says nothing against the answer.
const info = "PromQL info"

// Query is the value of a query at a time. It is not found if no series matches, or if the value is NaN. The context bounds the time.
// An answer with warnings is an error: a server that could not read all of its data gives what it has, and says so there. Errors
// quote neither the address nor an answer that is not an error of Prometheus.
func Query(ctx context.Context, client *http.Client, address, query string, at time.Time) (value float64, found bool, err error) {
	server, err := api.NewClient(api.Config{Address: address, Client: outward.Bounded(client)})
	if err != nil {
		return 0, false, errors.New("the address of Prometheus is not a URL")
	}
	answer, warnings, _, err := prometheusv1.NewAPI(server).Query(ctx, query, at)
	if err != nil {
		return 0, false, show(err)
	}
	for _, warning := range warnings {
		if !strings.HasPrefix(warning, info) {
			return 0, false, errors.New(shorten("the server warns of its answer: " + warning))
		}
	}
	value, found, err = number(answer)
	if err != nil || !found || math.IsNaN(value) {
		return 0, false, err
	}
	return value, true, nil
}

// number is the value of an answer with one sample.
func number(answer model.Value) (float64, bool, error) {
	switch answer := answer.(type) {
	case *model.Scalar:
		return float64(answer.Value), true, nil
	case model.Vector:
		switch {
		case len(answer) == 0:
			return 0, false, nil
		case len(answer) > 1:
			return 0, false, fmt.Errorf("%d series: aggregate them, e.g. sum(…)", len(answer))
		case answer[0].Histogram != nil:
			return 0, false, errors.New("the series is a histogram: use a function such as histogram_quantile(…)")
		}
		return float64(answer[0].Value), true, nil
	case nil:
		return 0, false, errNotPrometheus
	default:
		return 0, false, errors.New("gives neither a scalar nor an instant vector")
	}
}

// show is an error without what may be secret: an error of Prometheus ends before the labels or the text that it quotes.
func show(err error) error {
	failure, ok := errors.AsType[*prometheusv1.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("the server cannot be reached: %s", outward.Show(err))
	case failure.Type == prometheusv1.ErrBadResponse && !strings.HasPrefix(failure.Msg, "bad response code "):
		return errNotPrometheus
	}
	return errors.New(shorten(failure.Error()))
}

// shorten makes one line of a text of the server, without the labels or the text that it quotes.
func shorten(message string) string {
	message = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, message)
	if i := strings.IndexAny(message, "{\"'`"); i >= 0 {
		message = strings.TrimRight(message[:i], " ") + " …"
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	return message
}
