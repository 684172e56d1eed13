import { ExpectedReads } from '../../../../../core/state/postgres/expected-reads.ts'
import { TurnReads } from '../../../../../core/state/postgres/known-reads.ts'
import t from '../../../../support/harness/index.ts'

const request = (changes: object) => ({
  requests: [
    {
      ...{ call_sid: 'CA_first', part: 'outbound', project_id: 'prj_1', service: { type: 'trunk', id: 'trk_1' } },
      ...{ called: '+2348031234567', caller: '+2342010000001', now_ms: 1_770_000_000_000, ...changes },
    },
  ],
})
const ACCOUNT = 'select balance from account where id = $1 and kind = $2'
const READS = [
  { sql: 'select account_id from project where id = ?', values: ['prj_1'], rows: [{ account_id: 'bil_77', kind: 0 }] },
  { sql: 'select balance from account where id = ? and kind = ?', values: ['bil_77', 0], rows: [] },
  {
    sql: 'select \'?\' as "$1" from rate where prefix in (?, ?, ?) and since <= ?',
    values: ['2348031234567', '234', '', new Date(1_770_000_000_000).toISOString()],
    rows: [],
  },
]

t.test('reads of a run are expected of the next one of its kind, with the values of its input and rows', t => {
  const expected = new ExpectedReads()
  t.equal(expected.of('admit_call', request({})), null)
  expected.learn('admit_call', request({}), { reads: READS, writes: ['insert into call'] })
  const next = request({ called: '+4420712345678', project_id: 'prj_2', now_ms: 1_780_000_000_000 })
  const known = expected.of('admit_call', next)
  t.match(known?.statement(next).values, [
    ...['prj_2', 0, '4420712345678', '442', ''],
    new Date(1_780_000_000_000).toISOString(),
  ])
  t.match(known?.statement(next).sql, /from account where id = \(select "account_id" from r0 limit 1\) and kind = \$2/)
  t.match(known?.statement(next).sql, /select '\?' as "\$1" from rate/)
  const answered = known?.readsOf('[[{"account_id":"bil_78"}],[{"balance":true}],[]]', next)
  t.match(answered, [
    { values: ['prj_2'], rows: [{ account_id: 'bil_78' }] },
    { values: ['bil_78', 0], rows: [{ balance: 1 }] },
    { values: ['4420712345678', '442', ''], rows: [] },
  ])
  t.same(known?.writes, ['insert into call'])
  t.end()
})

t.test(
  'a procedure does not read again what an earlier one of its turn has read, until one writes to the same tables',
  t => {
    const expected = new ExpectedReads()
    expected.learn('admit_call', request({}), { reads: READS, writes: [] })
    const known = expected.of('admit_call', request({}))
    const turn = new TurnReads()
    const wanted = () => known?.wanted(request({}), read => turn.find(read))
    const left = () => wanted()?.at
    t.same(left(), [0, 1, 2])
    for (const read of READS) turn.add(read)
    t.same(left(), [])
    turn.wrote('update account set balance = ? where id = ?')
    t.same(left(), [1], 'its account comes from a row that is known')
    const { sql, values } = known?.statement(request({}), wanted()) ?? {}
    t.same(values, ['bil_77', 0])
    t.equal(sql, `with r1 as (${ACCOUNT}) select json_build_array(coalesce((select json_agg(r1) from r1), '[]'::json))`)
    const again = known?.readsOf('[[{"balance":5}]]', request({}), wanted())
    t.same(again, [{ sql: READS[1]?.sql, values: ['bil_77', 0], rows: [{ balance: 5 }] }])
    for (const read of again ?? []) turn.add(read)
    t.same(left(), [])
    t.same(turn.find(READS[1] ?? { sql: '', values: [] }), [{ balance: 5 }])
    turn.wrote('insert into project (id) values (?)')
    t.same(left(), [0, 1], 'what follows from a row that is read again is read again')
    t.equal(turn.find({ sql: READS[2]?.sql ?? '', values: ['other'] }), undefined)
    t.end()
  },
)

t.test('calls of another service of the project are expected to be alike, those of another project are not', t => {
  const expected = new ExpectedReads()
  expected.learn('admit_call', request({}), { reads: READS, writes: [] })
  const other = { type: 'trunk', id: 'trk_2' }
  t.not(expected.of('admit_call', request({ service: other })), null)
  t.equal(expected.of('admit_call', request({ service: other, project_id: 'prj_3' })), null)
  t.equal(expected.of('admit_call', request({ service: other, part: 'inbound' })), null)
  const first = expected.of('admit_call', request({}))
  expected.learn('admit_call', request({ service: other }), { reads: READS, writes: [] })
  t.equal(expected.of('admit_call', request({ service: other })), first, 'the same is kept once')
  t.end()
})
