// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// types returns what the fields of a kind are merged and managed by.
func (k Kind) types(make func() (managedfields.TypeConverter, error)) (managedfields.TypeConverter, error) {
	if k.Unmanaged {
		return noTypes{}, nil
	}
	return make()
}

// noTypes has no type of any object: a field manager leaves such objects as they are.
type noTypes struct{}

var errUnmanaged = errors.New("fields of this kind are not managed by this API server in memory")

func (noTypes) ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return nil, errUnmanaged
}

func (noTypes) TypedToObject(*typed.TypedValue) (runtime.Object, error) { return nil, errUnmanaged }
