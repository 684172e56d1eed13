import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ending } from '../../core/domain/calls/endings.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { addCallEvent } from '../../core/state/calls/call-events.ts'
import { recordExchange } from '../../core/state/calls/calls.ts'
import { insertMessages } from '../../core/state/calls/ladder.ts'
import { addMediaQuality } from '../../core/state/calls/media-quality.ts'
import { insertRecording } from '../../core/state/calls/recordings.ts'
import { finishCall, insertCall, writeCall } from '../../core/state/calls/running-calls.ts'
import { tone, wavBytes } from './audio.ts'
import type { ControlPlane } from './control-plane.ts'
import { queuedCall } from './ended-calls.ts'

const CALL_ID = 'told-call@192.0.2.7'
const CARRIER = '192.0.2.7:5060'
const PLATFORM = '192.0.2.1:5060'
const LASTED_MS = 34_000

/** Offsets in milliseconds from the call's begin, and what was sent then. */
const MESSAGES: readonly (readonly [number, 'in' | 'out', string, string])[] = [
  [0, 'out', 'INVITE sip:+2348030004711@192.0.2.7 SIP/2.0', 'INVITE'],
  [40, 'in', 'SIP/2.0 100 Trying', 'INVITE'],
  [600, 'in', 'SIP/2.0 180 Ringing', 'INVITE'],
  [2000, 'in', 'SIP/2.0 200 OK', 'INVITE'],
  [2010, 'out', 'ACK sip:+2348030004711@192.0.2.7 SIP/2.0', 'ACK'],
  [34_000, 'in', 'BYE sip:strowger@192.0.2.1 SIP/2.0', 'BYE'],
  [34_005, 'out', 'SIP/2.0 200 OK', 'BYE'],
]

const STEPS: readonly (readonly [number, object])[] = [
  [
    2020,
    {
      event: { type: 'answered' },
      commands: [{ type: 'play', items: [{ kind: 'speech', text: 'For sales press 1.' }] }],
    },
  ],
  [6000, { event: { type: 'play_ended' }, commands: [{ type: 'digits_on' }] }],
  [8000, { event: { type: 'digit', digit: '1' }, commands: [] }],
  [8500, { event: {}, commands: [{ type: 'dial_child', target: { kind: 'number', number: '+2348030004712' } }] }],
  [12_000, { event: { type: 'child_answered' }, commands: [{ type: 'bridge' }] }],
]

const TURN = { detector_ms: 600, recognizer_ms: 180, customer_ms: 240, voice_ms: 60, playout_ms: 20, total_ms: 1100 }

/**
 * Records a call of the API of which everything was kept: messages, steps and a key of its script, a request, two turns
 * of an agent, samples of its media, a recording with two channels, and the call that it dialled. Returns both sids.
 */
export async function toldCall(w: ControlPlane): Promise<{ readonly sid: string; readonly child: string }> {
  const { db } = w.state
  const begin_ms = w.clock.now() - LASTED_MS
  const at = (ms: number): string => iso(begin_ms + ms)
  const sid = newId.call()
  const child = newId.call()
  const facts = { origin: 'rest', direction: 'outbound-api', to_number: '+2348030004711' } as const
  await run(sid, facts, [0, 2000, LASTED_MS])
  await run(child, { parent_call_sid: sid, origin: 'dial', direction: 'outbound-dial', to_number: '+2348030004712' }, [
    ...([8500, 12_000, LASTED_MS] as const),
  ])
  await db
    .updateTable('call')
    .set({ sip_call_id: CALL_ID, ringing_at: at(600) })
    .where('sid', '=', sid)
    .execute()
  await insertMessages(db, {
    edge_id: '',
    messages: MESSAGES.map(([ms, direction, line, method]) => ({
      ...{ sip_call_id: CALL_ID, at_ms: begin_ms + ms, direction, protocol: 'udp', local: PLATFORM, remote: CARRIER },
      ...{ retransmission: 0, text: `${line}\r\nCall-ID: ${CALL_ID}\r\nCSeq: 1 ${method}\r\n\r\n` },
    })),
  })
  const runs = join(w.settings.data_dir, 'runs')
  mkdirSync(runs, { recursive: true })
  writeFileSync(
    join(runs, `${sid}-1.jsonl`),
    STEPS.map(([ms, step]) => JSON.stringify({ at: at(ms), ...step })).join('\n'),
  )
  const parameters = { CallSid: sid, Digits: '1' }
  const request = { call_sid: sid, method: 'POST', url: 'https://app.example/choice', parameters } as const
  const body = new TextEncoder().encode('<Response><Dial>+2348030004712</Dial></Response>')
  const reply = { ok: true, status: 200, duration_ms: 420, headers: { 'content-type': 'text/xml' }, body }
  await recordExchange(db, { ...request, reply }, begin_ms + 8480)
  const turns = [16_000, 22_000].map((ms, index) => ({ at: at(ms), ...TURN, total_ms: TURN.total_ms + index }))
  const told = { what: 'agent_turns', session_id: 'VX1', turns }
  await addCallEvent(db, { call_sid: sid, kind: 'state', number: null, detail: told }, begin_ms + 33_900)
  for (const [ms, mos] of [
    [12_000, 4.4],
    [22_000, 3.7],
    [32_000, 2.4],
  ] as const) {
    const stats = { codec: 'PCMA', mos, jitter_ms: 4, packets_received: ms / 20, packets_lost: 0, rtt_ms: 30 }
    await addMediaQuality(db, { call_sid: sid, leg_id: `${sid}-b`, stats }, begin_ms + ms)
  }
  await addStereo(w, sid, begin_ms + 2000)
  return { sid, child }

  async function run(call: string, over: object, [queued, answered, ended]: readonly number[]): Promise<void> {
    await w.state.transaction(async trx => {
      await insertCall(trx, queuedCall(w, call, at(queued ?? 0), over), begin_ms)
      await writeCall(trx, call, [{ step: 'answered', at_ms: begin_ms + (answered ?? 0) }])
      await finishCall(trx, call, {
        ending: ending({ cause: 'caller_hung_up', answered: true }),
        ended_ms: begin_ms + (ended ?? 0),
        pdd_ms: 600,
        media: null,
      })
    })
  }
}

/** Adds a recording: a tone of the caller in its first half, of the called party in its second. */
async function addStereo(w: ControlPlane, call_sid: string, from_ms: number): Promise<void> {
  const sid = newId.recording()
  const file = `recordings/${sid}.wav`
  const half = tone(440, 2000)
  const silence = new Int16Array(half.length)
  const bytes = wavBytes(8000, Int16Array.from([...half, ...silence]), Int16Array.from([...silence, ...half]))
  mkdirSync(join(w.settings.data_dir, 'recordings'), { recursive: true })
  writeFileSync(join(w.settings.data_dir, file), bytes)
  const of = { sid, call_sid, project_id: w.demo.project_id, source: 'RecordVerb', channels: 2, track: 'both' as const }
  await insertRecording(w.state.db, { ...of, file, expires_at: null }, from_ms)
  const ended = { status: 'completed', duration_ms: 4000, bytes: bytes.length } as const
  await w.state.db.updateTable('recording').set(ended).where('sid', '=', sid).execute()
}
