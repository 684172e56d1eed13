import {
  parameterOf,
  parserOf,
  rowsOfJson,
  storable,
  withNumbers,
  withNumbersAfter,
} from '../../../../../core/state/postgres/values.ts'
import t from '../../../../support/harness/index.ts'

const [BOOL, INT8, NUMERIC, TEXT] = [16, 20, 1700, 25]

t.test('values read as they do from SQLite: numbers are safe, a comparison is 1 or 0, texts stay', t => {
  t.equal(parserOf(INT8)('9007199254740991'), 9_007_199_254_740_991)
  t.throws(() => parserOf(INT8)('9007199254740993'), RangeError)
  t.throws(() => parserOf(NUMERIC)('9007199254740993'), RangeError)
  t.equal(parserOf(NUMERIC)('-12'), -12)
  t.equal(parserOf(NUMERIC)('2.5000'), 2.5)
  t.same([parserOf(BOOL)('t'), parserOf(BOOL)('f')], [1, 0])
  t.equal(parserOf(TEXT)('0012'), '0012')
  t.same(rowsOfJson('[{"a": true, "b": "t", "c": null, "d": 12, "e": 2.5}]'), [
    { a: 1, b: 't', c: null, d: 12, e: 2.5 },
  ])
  t.throws(() => rowsOfJson('[{"a": 9007199254740993}]'), RangeError)
  t.end()
})

t.test('a NUL in a text of a peer becomes a replacement character', t => {
  t.equal(parameterOf('a\0b\0'), 'a\ufffdb\ufffd')
  t.same(['plain', 7, null].map(parameterOf), ['plain', 7, null])
  const given = { call: { sid: 'CA_1', parts: ['a', null, 7, { name: '\\u0000' }] } }
  t.equal(storable(given), given, 'data without one stays the same object')
  t.same(storable({ call: [1, { name: 'a\0b' }] }), { call: [1, { name: 'a\ufffdb' }] })
  t.end()
})

t.test('numbers values, and leaves the marks of texts and names', t => {
  t.equal(
    withNumbers(`select '?', "a?b", 'it''s ?' from t where a = ? and b in (?, ?)`),
    `select '?', "a?b", 'it''s ?' from t where a = $1 and b in ($2, $3)`,
  )
  t.equal(
    withNumbersAfter(`select '$1' from t where a = $1 and b = $12`, 3),
    `select '$1' from t where a = $4 and b = $15`,
  )
  t.end()
})
