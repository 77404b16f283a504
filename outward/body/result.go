// SPDX-License-Identifier: Apache-2.0

package body

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// maxDepth bounds how deep lists and maps are nested in a result.
	maxDepth = 32
	// maxExact is the largest integer that every reader of JSON has: larger ones are texts.
	maxExact = 1<<53 - 1
)

// converter copies a value of CEL to Go values as encoding/json has them. A list may be in another many times: each time counts, so
// that a small value of CEL is no large result.
type converter struct {
	ctx           context.Context
	bytes, values int
}

// convert copies v. Each value counts as 1, and with its text as JSON has it, without escapes.
func (c *converter) convert(v ref.Val, depth int) (any, error) {
	if c.values++; c.values > maxValues {
		return nil, fmt.Errorf("has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("has lists and maps in each other deeper than %d", maxDepth)
	}
	if err := c.ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot be evaluated: %w", err)
	}
	switch v := v.(type) {
	case traits.Mapper:
		return c.fields(v, depth)
	case traits.Lister:
		return c.list(v, depth)
	default:
		return c.scalar(v)
	}
}

func (c *converter) fields(v traits.Mapper, depth int) (map[string]any, error) {
	out := map[string]any{}
	for i := v.Iterator(); i.HasNext() == types.True; {
		key := i.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("is no JSON: the key of a map is %s, and must be a text", key.Type().TypeName())
		}
		if err := c.count(len(name) + len(`"":,`)); err != nil {
			return nil, err
		}
		value, err := c.convert(v.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, c.count(len(`{}`))
}

func (c *converter) list(v traits.Lister, depth int) ([]any, error) {
	out := []any{}
	for i := v.Iterator(); i.HasNext() == types.True; {
		value, err := c.convert(i.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
		if err := c.count(len(`,`)); err != nil {
			return nil, err
		}
	}
	return out, c.count(len(`[]`))
}

func (c *converter) scalar(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, c.count(len(`null`))
	case types.Bool:
		return bool(v), c.count(len(`false`))
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("is no JSON: a number is %v", float64(v))
		}
		return c.number(float64(v))
	case types.Int:
		if v >= -maxExact && v <= maxExact {
			return c.number(float64(v))
		}
		return c.text(fmt.Sprint(int64(v)))
	case types.Uint:
		if v <= maxExact {
			return c.number(float64(v))
		}
		return c.text(fmt.Sprint(uint64(v)))
	case types.String:
		return c.text(string(v))
	case types.Bytes:
		return c.text(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp, types.Duration:
		text, ok := v.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("is no JSON: a %s has no text", v.Type().TypeName())
		}
		return c.text(string(text))
	default:
		return nil, fmt.Errorf("is no JSON: a value is %s", v.Type().TypeName())
	}
}

func (c *converter) number(n float64) (any, error) { return n, c.count(len(fmt.Sprint(n))) }

func (c *converter) text(s string) (any, error) { return s, c.count(len(s) + len(`""`)) }

// count adds n bytes to the result.
func (c *converter) count(n int) error {
	if c.bytes += n; c.bytes > maxBytes {
		return tooLong()
	}
	return nil
}

func tooLong() error { return errors.New("is longer than 64 KiB") }
