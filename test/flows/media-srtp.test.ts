import { strongestHz } from '../support/audio.ts'
import { baresip } from '../support/baresip.ts'
import { decidedCdrs } from '../support/busy.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'

// SRTP with an independent implementation: baresip with keys in its SDP (RFC 4568), as caller and as called party.

const PHONE = '127.0.0.2'
const DESK = '127.0.0.3'
const CALLED = '+2348030004711'
const ENCRYPTED = ';mediaenc=srtp-mand'

t.test('one baresip calls another with SRTP on both legs, and they hear each other', async t => {
  const w = await sharedWorld(t)
  const own = w.numbers[3] ?? ''
  const account = `${ENCRYPTED};answermode=auto`
  const desk = await baresip(t, { host: DESK, user: CALLED, tone_hz: 900, account })
  const trunk_id = await w.addTrunk(PHONE, {
    media_security: 'sdes_srtp_required',
    targets: [{ sip_uri: `sip:${DESK}:${desk.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  await until('the target has answered OPTIONS', async () => {
    const detail = await w.manage('GET', `/trunks/${trunk_id}`)
    return detail.body.endpoint_evidence[0]?.state === 'healthy'
  })
  const dial = `sip:${CALLED}@${w.sip.host}:${w.sip.port}`
  const phone = await baresip(t, { host: PHONE, user: own, tone_hz: 500, dial, account: ENCRYPTED })
  await phone.says(/Call established/)
  await desk.says(/Call established/)
  const stats = await until('both legs have received for some seconds', async () => {
    const rows = await w.state.db
      .selectFrom('media_quality')
      .innerJoin('call', 'call.sid', 'media_quality.call_sid')
      .select(['leg_id', 'stats'])
      .where('project_id', '=', w.project_id)
      .execute()
    const late = rows.map(row => ({ leg: row.leg_id, ...JSON.parse(row.stats) }))
    const heard = late.filter(row => row.packets_received > 150)
    return new Set(heard.map(row => row.leg)).size === 2 ? heard : undefined
  })
  for (const { secured, srtp_dropped } of stats) t.match({ secured, srtp_dropped }, { secured: true, srtp_dropped: 0 })
  await Promise.all([phone, desk].map(one => one.plays(4000)))

  const [atPhone, cdr] = [await phone.heard(), async () => (await decidedCdrs(w))[0]]
  t.match(await until('the CDR', cdr), { status: 'completed', ended_by: 'caller', trunk_id })
  const atDesk = await desk.heard()
  t.equal(strongestHz(atPhone.subarray(8000)), 900, 'the phone hears the desk')
  t.equal(strongestHz(atDesk.subarray(8000)), 500, 'the desk hears the phone')
})
