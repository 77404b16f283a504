// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"math"
	"reflect"
	"strings"
)

// shallow are the functions that do not read into their arguments, or only in one place. They often get all values of a chart,
// and measuring these each time is a waste.
var shallow = map[string]bool{
	"append": true, "coalesce": true, "concat": true, "default": true, "dict": true, "dig": true, "empty": true, "first": true,
	"get": true, "hasKey": true, "initial": true, "keys": true, "kindIs": true, "kindOf": true, "last": true, "list": true,
	"mustAppend": true, "mustFirst": true, "mustInitial": true, "mustLast": true, "mustPrepend": true, "mustPush": true,
	"mustRest": true, "mustReverse": true, "mustSlice": true, "omit": true, "pick": true, "pluck": true, "prepend": true,
	"push": true, "required": true, "rest": true, "reverse": true, "set": true, "slice": true, "ternary": true, "tuple": true,
	"typeIs": true, "typeIsLike": true, "typeOf": true, "unset": true, "values": true,
}

// costly are the functions that take a processor for a tenth of a second and longer, whatever their arguments: they make keys, or are
// slow on purpose.
var costly = map[string]bool{
	"genPrivateKey": true, "genCA": true, "genCAWithKey": true, "genSelfSignedCert": true, "genSelfSignedCertWithKey": true,
	"genSignedCert": true, "genSignedCertWithKey": true, "bcrypt": true, "htpasswd": true, "derivePassword": true,
}

// costlyFuel is what one of them costs: no chart that is in use makes more than some 30 keys and hashes of passwords.
const costlyFuel = maxFuel / 32

// grown are the functions whose result may be longer than their arguments, with a bound of its bytes.
var grown = map[string]func(args []reflect.Value) float64{
	"until": func(a []reflect.Value) float64 { return 8 * math.Abs(number(a[0])) },
	"untilStep": func(a []reflect.Value) float64 {
		return 8 * math.Abs(number(a[1])-number(a[0])) / math.Max(1, math.Abs(number(a[2])))
	},
	"seq":                        sequence,
	"repeat":                     func(a []reflect.Value) float64 { return number(a[0]) * length(a[1]) },
	"indent":                     indented,
	"nindent":                    indented,
	"randAlpha":                  func(a []reflect.Value) float64 { return number(a[0]) },
	"randAlphaNum":               func(a []reflect.Value) float64 { return number(a[0]) },
	"randAscii":                  func(a []reflect.Value) float64 { return number(a[0]) },
	"randNumeric":                func(a []reflect.Value) float64 { return number(a[0]) },
	"randBytes":                  func(a []reflect.Value) float64 { return number(a[0]) },
	"replace":                    replaced,
	"regexReplaceAll":            rewritten,
	"regexReplaceAllLiteral":     rewritten,
	"mustRegexReplaceAll":        rewritten,
	"mustRegexReplaceAllLiteral": rewritten,
	"wrapWith": func(a []reflect.Value) float64 {
		return length(a[2]) + length(a[1])*(1+length(a[2])/math.Max(1, number(a[0])))
	},
	"printf": printed,
	"join":   func(a []reflect.Value) float64 { return length(a[0]) * length(a[1]) },
}

// number is the value of a numeric argument.
func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return 0
}

// length is the length of an argument.
func length(v reflect.Value) float64 {
	v = plain(v)
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return float64(v.Len())
	default:
		return 0
	}
}

// plain takes the interfaces off a value.
func plain(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// sequence bounds the result of seq, whose numbers are first, step and last as in the shell.
func sequence(args []reflect.Value) float64 {
	var span float64
	step := 1.0
	for i := range args[0].Len() {
		span += math.Abs(number(args[0].Index(i)))
	}
	if args[0].Len() == 3 {
		step = math.Max(1, math.Abs(number(args[0].Index(1))))
	}
	return 20 * (span/step + 1)
}

// printed bounds the result of printf: by the widths in its format, and by arguments that are printed more than once.
func printed(args []reflect.Value) float64 {
	var longest, widths, digits float64
	for i := range args[1].Len() {
		longest = math.Max(longest, length(args[1].Index(i)))
	}
	format := args[0].String()
	for _, c := range format {
		switch {
		case c >= '0' && c <= '9':
			digits = math.Min(10*digits+float64(c-'0'), 1e6)
			continue
		case c == '*':
			widths += 1e6
		}
		widths, digits = widths+digits, 0
	}
	return widths + longest*float64(strings.Count(format, "%"))
}

func indented(args []reflect.Value) float64 {
	return length(args[1]) + number(args[0])*float64(1+strings.Count(args[1].String(), "\n"))
}

func replaced(args []reflect.Value) float64 {
	old, text := args[0].String(), args[2].String()
	return float64(len(text)) + length(args[1])*float64(strings.Count(text, old))
}

// rewritten bounds the result of a replacement by a regular expression. It could match at every byte, but hardly ever does.
func rewritten(args []reflect.Value) float64 {
	return (length(args[1]) + 1) * length(args[2]) / 16
}

// before pays for a call, and refuses it when its arguments or its result are too large.
func (r *run) before(name string, args []reflect.Value) error {
	if err := r.spend(callFuel); err != nil {
		return err
	}
	if costly[name] {
		if err := cmp.Or(r.spend(costlyFuel), r.ctx.Err()); err != nil {
			return err
		}
	}
	if size, ok := grown[name]; ok && size(args) > maxText {
		return exceeded("%s would make more than %d MiB", name, maxText>>20)
	}
	if !shallow[name] {
		return r.measured(name, args...)
	}
	kept := int64(0)
	for _, arg := range args {
		kept += weight(arg) // the result may keep it
	}
	return r.spend(kept)
}

// after pays for the result of a call.
func (r *run) after(name string, result reflect.Value) error {
	size := weight(result)
	if size > maxOutput {
		return exceeded("%s makes more than %d MiB", name, maxOutput>>20)
	}
	if strings.HasPrefix(strings.TrimPrefix(strings.ToLower(name), "must"), "from") {
		size *= decodeFuel // a decoded value takes many times the memory of its text
	}
	return r.spend(size)
}

// weight is the size of a value itself, without the values that it refers to.
func weight(v reflect.Value) int64 {
	switch v = plain(v); v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Slice, reflect.Map:
		return int64(v.Len()) * int64(max(1, v.Type().Elem().Size()))
	default:
		return 0
	}
}

// measured refuses values that are too large or nested too deep to be processed as a whole. A map that contains itself is
// nested without end.
func (r *run) measured(name string, values ...reflect.Value) error {
	m := meter{left: maxText}
	for _, v := range values {
		if !m.take(v, 0) {
			return exceeded("%s is given a value that is larger than %d MiB or nested more than %d deep",
				name, maxText>>20, maxNesting)
		}
	}
	if m.left < maxText-largeText {
		return r.ctx.Err() // what takes long is not counted in calls
	}
	return nil
}

// meter measures values.
type meter struct{ left int }

// take subtracts the size of a value. Deeper values count more, because they may be indented.
func (m *meter) take(v reflect.Value, depth int) bool {
	if m.left -= 8 + 2*depth; m.left < 0 || depth > maxNesting {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		m.left -= v.Len()
	case reflect.Interface, reflect.Pointer:
		return v.IsNil() || m.take(v.Elem(), depth+1)
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if !m.take(entries.Key(), depth+1) || !m.take(entries.Value(), depth+1) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		return m.takeList(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if !m.take(v.Field(i), depth+1) {
				return false
			}
		}
	}
	return m.left >= 0
}

func (m *meter) takeList(v reflect.Value, depth int) bool {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		m.left -= v.Len()
		return m.left >= 0
	}
	for i := range v.Len() {
		if !m.take(v.Index(i), depth+1) {
			return false
		}
	}
	return true
}
