import { Readable } from 'node:stream'
import { figuresInWords } from '../../core/domain/calls/leg-figures.ts'
import { pcapng } from '../../core/domain/ladder/pcapng.ts'
import { ladderUnavailable } from '../../core/domain/ladder/unavailable.ts'
import { type Evidence, signedEvidence } from '../../core/runtime/evidence.ts'
import type { HistoryRow } from '../../core/state/calls/call-history.ts'
import { ladderOf } from '../../core/state/calls/ladder.ts'
import { legFiguresOf } from '../../core/state/calls/media-quality.ts'
import type { Db } from '../../core/state/index.ts'
import { auditOfResources } from '../../core/state/people/audit.ts'
import { mayUse } from '../http/access.ts'
import type { Caller } from '../http/caller.ts'
import { Instant, resource, Type } from '../http/schema.ts'
import type { Services } from '../http/services.ts'
import { callDecision, callDetail, callLadder, callMedia, runLogs } from './call-explained.ts'
import { route } from './route.ts'

/** Files about a call for readers outside the platform: a capture of its SIP, and signed evidence. */

const Text = Type.String()
const Digest = Type.String({ pattern: '^[0-9a-f]{64}$' })

const CallEvidence = resource('CallEvidence', {
  format: Text,
  about: resource('EvidenceAbout', { call_id: Text, made_at: Instant, made_by: Text }),
  parts: Type.Record(Text, Type.Unknown()),
  digests: Type.Record(Text, Digest),
  public_key: Text,
  signature: Text,
})

export const callFiles = [
  route({
    method: 'get',
    path: '/calls/{call_id}/pcap',
    summary: 'Download the SIP messages of a call as a capture for Wireshark, tshark or sngrep (pcapng)',
    description:
      'An IP packet for each message of the ladder, with its addresses, ports and time, and without secrets. What was ' +
      'encrypted on the wire stands in UDP packets. The comment of the capture has the media figures of each leg: RTP ' +
      'packets are not kept.',
    scope: 'call_diagnostics:read',
    produces: 'application/x-pcapng',
    replies: { 200: null },
    async run({ db, call, services }) {
      const capture = await captureOf(db, call, services)
      const headers = {
        'Content-Type': 'application/x-pcapng',
        'Content-Length': String(capture.length),
        'Content-Disposition': `attachment; filename="${call.sid}.pcapng"`,
      }
      return { status: 200, headers, stream: Readable.from([capture]) }
    },
  }),

  route({
    method: 'get',
    path: '/calls/{call_id}/evidence',
    summary: 'Everything that is known of a call, signed by the installation',
    description:
      'Its parts are what other endpoints answer to the key: `call` (with the SHA-256 of its recordings), for keys ' +
      'with `call_history:read`; `ladder`, `decision` (with the inputs of the price) and `media`; and `audit`, the ' +
      'changes of the call, its recordings, trunk, number and application in the audit trail, for keys with ' +
      '`audit:read` that are not restricted to a subaccount. `strowger verify FILE` checks it without the platform. ' +
      'The public key is at `/evidence-key.pem`.',
    scope: 'call_diagnostics:read',
    replies: { 200: CallEvidence },
    async run({ db, call, caller, now, services }) {
      const evidence = await evidenceOf(db, call, { caller, now, services })
      const headers = { 'Content-Disposition': `attachment; filename="${call.sid}-evidence.json"` }
      return { status: 200, headers, body: evidence }
    },
  }),
]

async function captureOf(db: Db, call: HistoryRow, { settings }: Services): Promise<Buffer> {
  const messages = (await ladderOf(db, call.sid, 'customer')) ?? []
  const own = settings.second ? [settings.host, settings.second.host] : [settings.host]
  const notes = [
    `Call ${call.sid}. Secrets are masked.`,
    ladderUnavailable(settings.drachtio !== null, messages) ?? '',
    ...(await legFiguresOf(db, call.sid)).map(figuresInWords),
  ]
  return pcapng(messages, own, notes.filter(Boolean).join('\n'))
}

async function evidenceOf(
  db: Db,
  call: HistoryRow,
  { caller, now, services }: { readonly caller: Caller; readonly now: string; readonly services: Services },
): Promise<Evidence> {
  const { settings } = services
  const detail = await callDetail(db, call, runLogs(services))
  const audited = mayUse(caller, 'audit:read') && caller.subaccount_id === null
  const parts = {
    ...(mayUse(caller, 'call_history:read') ? { call: detail } : {}),
    ladder: await callLadder(db, call, services),
    decision: await callDecision(db, call),
    media: await callMedia(db, call),
    ...(audited ? { audit: await auditOf(db, call, detail.recordings, caller) } : {}),
  }
  return signedEvidence({ call_id: call.sid, made_at: now, made_by: settings.base_url }, parts, settings.master_key)
}

/** The audit trail of what a call used, until its end, and of its recordings, with the hashes of its chain. */
async function auditOf(db: Db, call: HistoryRow, recordings: readonly { readonly id: string }[], caller: Caller) {
  const used = [call.sid, call.trunk_id, call.number_id, call.application_id].flatMap(id => id ?? [])
  const own = recordings.map(({ id }) => id)
  const events = [
    ...(await auditOfResources(db, caller.organization_id, { resource_ids: used, until: call.ended_at })),
    ...(await auditOfResources(db, caller.organization_id, { resource_ids: own, until: null })),
  ]
  return events.map(({ position: _place, changes, ...event }) => ({ ...event, changes: JSON.parse(changes) }))
}
