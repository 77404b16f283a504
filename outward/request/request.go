// SPDX-License-Identifier: Apache-2.0

// Package request measures by an HTTP request: the status and the JSON of its answer.
package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"shipper.dev/shipper/outward"
)

const (
	// maxValues and maxDepth bound the JSON of an answer: 1 MiB of {} would take 50 MiB of memory.
	maxValues = 10_000
	maxDepth  = 64
)

// Request is what is sent.
type Request struct {
	// Method is GET or POST; empty means GET.
	Method, URL string
	Headers     map[string]string
	Body        string
}

// Response is what a server answered.
type Response struct {
	Status int
	// JSON is the body as encoding/json decodes it; nil if the body is no JSON.
	JSON any
}

// Do sends a request and reads the whole answer. A redirect is an answer like any other: it is not followed. The context bounds the
// time. Errors quote neither the request nor the answer.
func Do(ctx context.Context, client *http.Client, r Request) (Response, error) {
	if r.Method != "" && r.Method != http.MethodGet && r.Method != http.MethodPost {
		return Response{}, errors.New("the method is neither GET nor POST")
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return Response{}, errors.New("the URL cannot be requested")
	}
	request.Header.Set("User-Agent", "shipper")
	if r.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	response, err := outward.Bounded(client).Do(request)
	if err != nil {
		return Response{}, fmt.Errorf("the server cannot be reached: %s", outward.Show(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if errors.Is(err, outward.ErrTooLong) {
		return Response{}, err
	}
	if err != nil {
		return Response{}, fmt.Errorf("reading the answer: %s", outward.Show(err))
	}
	content, err := decode(body)
	if err != nil {
		return Response{}, err
	}
	return Response{Status: response.StatusCode, JSON: content}, nil
}

// decode decodes a body, or gives nil if it is no JSON.
func decode(body []byte) (any, error) {
	if !json.Valid(body) {
		return nil, nil
	}
	if err := bound(body); err != nil {
		return nil, err
	}
	var content any
	if json.Unmarshal(body, &content) != nil {
		return nil, nil
	}
	return content, nil
}

// bound returns an error if valid JSON has too many values or levels. It counts brackets and commas: empty lists and maps count twice.
func bound(body []byte) error {
	values, depth, inText, escaped := 1, 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped, inText = c == '\\', c != '"'
		case c == '"':
			inText = true
		case c == '[', c == '{':
			depth++
			values++
		case c == ']', c == '}':
			depth--
		case c == ',':
			values++
		}
		if depth > maxDepth {
			return fmt.Errorf("answers JSON with lists and maps in each other deeper than %d", maxDepth)
		}
		if values > maxValues {
			return fmt.Errorf("answers JSON with more than %d values", maxValues)
		}
	}
	return nil
}
