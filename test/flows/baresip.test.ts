import t from 'tap'
import { strongestHz } from '../support/audio.ts'
import { baresip } from '../support/baresip.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// A second, independent peer: baresip makes a call through its trunk and takes one, with audio both ways.

const PHONE = '127.0.0.2'
const DESK = '127.0.0.3'
/** baresip takes only calls to the user of its account. */
const CALLED = '+2348030004711'

t.test('one baresip calls another through a trunk, and each hears the other', async t => {
  const w = await world(t)
  const own = w.numbers[3] ?? ''
  const desk = await baresip(t, { host: DESK, user: CALLED, tone_hz: 900, account: ';answermode=auto' })
  // baresip's RTP leaves by the address that the kernel picks, not by the one in its SDP: as behind a NAT, which the
  // trunk's relaxed source validation allows for.
  const trunk_id = await w.addTrunk(PHONE, {
    targets: [{ sip_uri: `sip:${DESK}:${desk.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  await until('the target has answered OPTIONS', async () => {
    const detail = await w.manage('GET', `/trunks/${trunk_id}`)
    return detail.body.endpoint_evidence[0]?.state === 'healthy'
  })
  const called = `sip:${CALLED}@${w.sip.host}:${w.sip.port}`
  const phone = await baresip(t, { host: PHONE, user: own, tone_hz: 500, dial: called })
  await phone.says(/Call established/)
  await desk.says(/Call established/)
  await until(
    'both legs have received for some seconds',
    async () => {
      const rows = await w.state.db.selectFrom('media_quality').selectAll().execute()
      const heard = rows.filter(row => JSON.parse(row.stats).packets_received > 150).map(row => row.leg_id)
      return new Set(heard).size === 2
    },
    40_000,
  )

  const [atPhone, cdr] = [await phone.heard(), () => w.state.db.selectFrom('cdr').selectAll().executeTakeFirst()]
  const record = await until('the CDR', cdr)
  const atDesk = await desk.heard()
  t.equal(strongestHz(atPhone.subarray(8000, 24_000)), 900, 'the phone hears the desk')
  t.equal(strongestHz(atDesk.subarray(8000, 24_000)), 500, 'the desk hears the phone')
  t.match(record, { status: 'completed', ended_by: 'caller', trunk_id })
})
