import { type Diverter, diversionHeaders, readDiverters } from '../../../../../core/domain/sip/diversion.ts'
import t from '../../../../support/harness/index.ts'

const read = (diversion: string | null, history: string | null = null, privacy: string | null = null) =>
  readDiverters({ diversion, history, privacy, called: '+2348030004711', country: 'NG' })
const one = (number: string, reason: string, counter = 1, hidden = false): Diverter => ({
  number,
  reason,
  counter,
  hidden,
})

t.test('all entries are read in their order, with reason, counter and privacy', async t => {
  t.same(
    read(
      '"Ada, desk" <sip:+2348031112222@x>;reason=no-answer;counter=2;privacy=full,' +
        ' <tel:08031113333>;reason="user-busy", <sip:8031114444;phone-context=+234@x>;reason=follow-me;limit=4;screen=yes',
    ),
    [
      one('+2348031112222', 'no-answer', 2, true),
      one('+2348031113333', 'user-busy'),
      one('+2348031114444', 'follow-me'),
    ],
  )
  t.same(read('<sip:200@x>'), [one('200', 'unknown')], 'an extension diverts, too')
  t.same(read('<sip:200@x>;reason="who knows?";counter=-1;privacy=off'), [one('200', 'unknown')])
  t.same(read('nonsense'), [])
  t.equal(read(Array.from({ length: 40 }, (_, i) => `<sip:${i}@x>`).join()).length, 20)
  t.equal(read(`${'<sip:1@x>;reason='.repeat(50_000)}`).length <= 1, true)
})

t.test('of History-Info those entries are diverters that sent the call to another number', async t => {
  t.same(
    read(
      null,
      '<sip:+2348031112222@x?Privacy=history>;index=1, <sip:+2348031113333@x;cause=486>;index=1.1;mp=1,' +
        ' <sip:+2348031113333@y>;index=1.1.1;np=1.1, <sip:+2348030004711@z;cause=302>;index=1.1.1.1;mp=1.1.1',
    ),
    [one('+2348031113333', 'unconditional'), one('+2348031112222', 'user-busy', 1, true)],
  )
  t.same(
    read(null, '<sip:+2348031112222@x?Reason=SIP%3Bcause%3D408>;index=1, <sip:+2348030004711@x>;index=1.1'),
    [one('+2348031112222', 'no-answer')],
    'the reason of RFC 4244',
  )
  t.same(read(null, '<sip:+2348031112222@x>;index=1'), [one('+2348031112222', 'unknown')], 'without the last target')
  t.same(read(null, '<sip:+2348030004711@x>;index=1'), [], 'the called number alone')
  t.same(
    read('<sip:+2348031112222@x>;reason=no-answer', '<sip:+2348031112222@x>;index=1, <sip:+2348030004711@x>;index=1.1'),
    [one('+2348031112222', 'no-answer')],
    'both headers tell one history',
  )
})

t.test('a message that asks for privacy of its headers hides the whole history', async t => {
  const history = '<sip:+2348031112222@x>;index=1, <sip:+2348030004711@x;cause=486>;index=1.1'
  const hidden = (privacy: string | null, diversion: string | null = null) =>
    read(diversion, history, privacy).map(diverter => diverter.hidden)
  for (const privacy of ['history', 'id; Header', 'session,critical']) t.same(hidden(privacy), [true], privacy)
  for (const privacy of [null, 'none', 'id', 'user']) t.same(hidden(privacy), [false], `${privacy}`)
  const diversion = '<sip:+2348031112222@x>;reason=user-busy'
  t.same(hidden('history', diversion), [true], 'Diversion tells the same history')
  t.same(read(diversion, null, 'history'), [one('+2348031112222', 'user-busy')], 'Diversion alone has its own privacy')
})

t.test('both headers are written with the same history, and a hidden number only to a network', async t => {
  const diverters = [one('+2348031113333', 'user-busy'), one('+2348031112222', 'no-answer', 2, true)]
  const to = { called: '+2348030004711', domain: 'd' }
  const network = diversionHeaders(diverters, { ...to, trusted: true })
  t.same(network, {
    Diversion:
      '<sip:+2348031113333@d>;reason=user-busy;counter=1, <sip:+2348031112222@d>;reason=no-answer;counter=2;privacy=full',
    'History-Info':
      '<sip:+2348031112222@d?Privacy=history>;index=1, <sip:+2348031113333@d;cause=408>;index=1.1;mp=1,' +
      ' <sip:+2348030004711@d;cause=486>;index=1.1.1;mp=1.1',
  })
  t.same(read(network.Diversion ?? null), diverters, 'we read what we write')
  t.same(
    read(null, network['History-Info'] ?? null),
    diverters.map(diverter => ({ ...diverter, counter: 1 })),
  )
  t.notMatch(JSON.stringify(diversionHeaders(diverters, { ...to, trusted: false })), /31112222/)
  t.same(diversionHeaders([], { ...to, trusted: true }), {})
})
