// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// MaxData bounds the data of a run as JSON, in bytes.
const MaxData = 256 << 10

// earlierKey is the space of data for what earlier tasks of the same name wrote.
const earlierKey = "earlier"

// reserved are the keys of data that no task and no user writes: they are the event's own.
var reserved = []string{"project", "stage", "service", "status", "result", "message", "labels", earlierKey}

// Reserved reports whether a key of data belongs to events.
func Reserved(key string) bool { return slices.Contains(reserved, key) }

// Begin returns the data that a task gets: its own space has its properties only (K11, K14). What an earlier task of the same name wrote
// there is moved to earlier (KS9).
func Begin(data shipper.FreeForm, task *shipper.Task) shipper.FreeForm {
	out := data.DeepCopy()
	if out == nil {
		out = shipper.FreeForm{}
	}
	if before, again := out[task.Name]; again {
		earlier, _ := out[earlierKey].(map[string]any)
		if earlier == nil {
			earlier = map[string]any{}
		}
		list, _ := earlier[task.Name].([]any)
		earlier[task.Name] = append(list, before)
		out[earlierKey] = earlier
	}
	space := map[string]any(task.Properties.DeepCopy())
	if space == nil {
		space = map[string]any{}
	}
	out[task.Name] = space
	return out
}

// Report merges what a task reported into data (K13, K15): maps merge, all else is replaced, lists too (KS8). spaces are the names of the
// tasks of the sequence; a task writes no space but its own.
func Report(data shipper.FreeForm, task string, spaces []string, reported shipper.FreeForm) (shipper.FreeForm, error) {
	out := data.DeepCopy()
	if out == nil {
		out = shipper.FreeForm{}
	}
	for _, key := range slices.Sorted(maps.Keys(reported)) {
		switch {
		case Reserved(key):
			return nil, fmt.Errorf("data.%s is written by Shipper: leave it out", key)
		case key != task && slices.Contains(spaces, key):
			return nil, fmt.Errorf("data.%s is the space of another task: write into data.%s", key, task)
		}
		out[key] = merged(out[key], reported.DeepCopy()[key])
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding data: %w", err)
	}
	if len(raw) > MaxData {
		return nil, fmt.Errorf("%d KiB of data, of %d: put it into a store and pass its URL; task %s wrote last", len(raw)>>10, MaxData>>10, task)
	}
	return out, nil
}

// merged is b over a. It may change a.
func merged(a, b any) any {
	below, over := a, b
	into, ok := below.(map[string]any)
	from, isMap := over.(map[string]any)
	if !ok || !isMap {
		return b
	}
	for key, value := range from {
		into[key] = merged(into[key], value)
	}
	return into
}

// Same reports whether two values are the same as JSON: numbers of free-form values have several Go types.
func Same(a, b any) bool {
	left, err1 := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}
