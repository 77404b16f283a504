// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package screen

import "os"

// resizes tells nothing where there is no such signal: the size is looked at before each picture.
func resizes() (<-chan os.Signal, func()) { return nil, func() {} }
