import { columnsOf, table } from '../../../bin/table.ts'
import { render } from '../../../bin/top.ts'
import t from '../../support/harness/index.ts'

// Tables of commands at the widths that terminals have. No line is longer, and nothing is cut without an ellipsis.

const CALLS = [
  {
    id: 'CA0123456789abcdef0123456789abcdef',
    from: '+2348030000001',
    to: '+2342010000001',
    status: 'completed',
    at: '2026-11-26T01:02:03.456Z',
    seconds: 62,
    trunk: 'Head office Lagos',
    mos: 4.4,
    price_minor: null,
    reason: null,
    revision: 3,
  },
  {
    id: 'CAfedcba9876543210fedcba9876543210',
    from: 'anonymous',
    to: '+2342010000002',
    status: 'no-answer',
    at: '2026-11-26T01:01:00.000Z',
    seconds: 0,
    trunk: null,
    mos: null,
    price_minor: 0,
    reason: 'no_answer',
    revision: 12,
  },
]

const at = (width: number): string[] => table(CALLS, columnsOf(CALLS, true), width)

t.test('a table fits 40, 80 and 200 columns: numbers and times are whole, and the last columns go first', async t => {
  t.same(at(40), [
    'ID            TO              STATUS',
    'CA0123456789  +2342010000001  completed',
    'CAfedcba9876  +2342010000002  no-answer',
  ])
  t.same(at(80), [
    'ID            FROM            TO              STATUS     AT',
    'CA0123456789  +2348030000001  +2342010000001  completed  2026-11-26 01:02',
    'CAfedcba9876  anonymous       +2342010000002  no-answer  2026-11-26 01:01',
  ])
  t.same(at(200), [
    'ID            FROM            TO              STATUS     AT                SECONDS  TRUNK              MOS  PRICE MINOR  REASON     REVISION',
    'CA0123456789  +2348030000001  +2342010000001  completed  2026-11-26 01:02       62  Head office Lagos  4.4            -  -                 3',
    'CAfedcba9876  anonymous       +2342010000002  no-answer  2026-11-26 01:01        0  -                    -            0  no_answer        12',
  ])
  for (const width of [20, 33, 40, 41, 77, 80, 120, 200])
    for (const line of at(width)) t.ok(line.length <= width, `${width}: ${line}`)
})

t.test('a program gets whole ids and times, and every column', async t => {
  const [head = '', first = ''] = table(CALLS, columnsOf(CALLS, false), Number.POSITIVE_INFINITY)
  t.match(head, /^ID +FROM .*REVISION$/)
  t.match(first, 'CA0123456789abcdef0123456789abcdef')
  t.match(first, '2026-11-26T01:02:03.456Z')
})

t.test('a name with line breaks and escapes stays on its line', async t => {
  const lines = table([{ name: 'a\nb\u001b[31m' }], columnsOf([{ name: 'x' }], true), 80)
  t.same(lines, ['NAME', 'a b\\u001b[31m'])
})

t.test('top shows caller, called, status and time at 80 columns, and status and time at 40', async t => {
  const call = {
    ...{ id: 'CA0123456789abcdef0123456789abcdef', direction: 'outbound-api', from: '+2342010000001' },
    ...{ to: '+2348030000001', status: 'in-progress', trunk: 'Head office Lagos', seconds: 125 },
  }
  const top = {
    ...{ at: '2026-11-26T01:02:03.456Z', live_calls: 1, cps: 0, calls_last_minute: 1, asr_1h_pct: null },
    ...{ acd_1h_seconds: null, projects: [], alerts_open: 0, containments_open: 0, nodes: [], calls: [call] },
  }
  const last = (width: number) => render(top, width).slice(-2)
  t.same(last(40), ['CALL      TO           STATUS       TIME', 'CA01234…  +234803000…  in-progress  2:05'])
  t.same(last(80), [
    'CALL          FROM            TO              STATUS       TIME  TRUNK',
    'CA0123456789  +2342010000001  +2348030000001  in-progress  2:05  Head office La…',
  ])
  for (const width of [40, 80, 200]) for (const line of render(top, width)) t.ok(line.length <= width, line)
})
