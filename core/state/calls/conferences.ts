import type { ExpressionBuilder, Selectable } from 'kysely'
import { iso } from '../../runtime/clock.ts'
import type { ConferenceParticipantTable, ConferenceTable, Db, Schema, Trx } from '../db.ts'
import type { HistoryRow } from './call-history.ts'

/** Conferences and their participants. Nodes write what happens in a room; the APIs read it and write wishes. */

type Conference = Selectable<ConferenceTable>
type Participant = Selectable<ConferenceParticipantTable>

/** `live`: the conference has a participant whose call goes on. */
export type ConferenceRow = Conference & { readonly live: boolean }

/** `call_status` is that of the participant's call. */
export type ParticipantRow = Participant & {
  readonly call_status: Schema['call']['status']
  readonly call_ended_at: string | null
  readonly from_number: string
  readonly to_number: string
}

type ConferenceStatus = 'init' | 'in-progress' | 'completed'

export const conferenceStatus = ({ ended_at, live, started_at }: ConferenceRow): ConferenceStatus =>
  ended_at !== null || !live ? 'completed' : started_at === null ? 'init' : 'in-progress'

type ParticipantStatus = 'queued' | 'ringing' | 'connected' | 'complete' | 'failed'

export function participantStatus(row: ParticipantRow): ParticipantStatus {
  if (row.joined_at === null) {
    if (row.call_ended_at !== null) return 'failed'
    return row.call_status === 'queued' ? 'queued' : 'ringing'
  }
  return row.left_at !== null || row.call_ended_at !== null ? 'complete' : 'connected'
}

const liveParticipant = (eb: ExpressionBuilder<Schema, 'conference'>) =>
  eb.exists(
    eb
      .selectFrom('conference_participant')
      .innerJoin('call', 'call.sid', 'conference_participant.call_sid')
      .select('conference_participant.call_sid')
      .whereRef('conference_participant.conference_sid', '=', 'conference.sid')
      .where('conference_participant.left_at', 'is', null)
      .where('call.ended_at', 'is', null),
  )

const conferences = (db: Db | Trx, project_id: string) =>
  db
    .selectFrom('conference')
    .selectAll('conference')
    .select(eb => liveParticipant(eb).as('live'))
    .where('conference.project_id', '=', project_id)

/** SQLite has no booleans: it returns 0 or 1. */
const shaped = (row: Conference & { readonly live: unknown }): ConferenceRow => ({ ...row, live: Boolean(row.live) })

export async function findConference(
  db: Db | Trx,
  project_id: string,
  sid: string,
): Promise<ConferenceRow | undefined> {
  const row = await conferences(db, project_id).where('conference.sid', '=', sid).executeTakeFirst()
  return row && shaped(row)
}

/** How long a conference counts as running from its claim on, before its first participant has a row. */
const CLAIM_MS = 60_000

/** Returns the running conference of a name, which a project has once. A node may have claimed it just now. */
export async function findRunningConference(
  db: Db | Trx,
  project_id: string,
  friendly_name: string,
  now_ms: number,
): Promise<ConferenceRow | undefined> {
  const claimed_since = iso(now_ms - CLAIM_MS)
  const row = await conferences(db, project_id)
    .where('conference.friendly_name', '=', friendly_name)
    .where('conference.ended_at', 'is', null)
    .where(eb =>
      eb.or([
        liveParticipant(eb),
        eb('conference.node_id', 'is not', null).and('conference.updated_at', '>=', claimed_since),
      ]),
    )
    .orderBy('conference.position', 'desc')
    .executeTakeFirst()
  return row && shaped(row)
}

interface Bounds {
  readonly from?: string
  readonly before?: string
}

interface ConferenceFilter {
  readonly status?: ConferenceStatus
  readonly friendly_name?: string
  /** Bounds of `created_at` and `updated_at`: `from` is inclusive, `before` exclusive. */
  readonly created?: Bounds
  readonly updated?: Bounds
}

/** A window of a list, newest first: from an offset, or next to a position. */
export type ListWindow = { readonly offset: number } | { readonly older_than: number } | { readonly newer_than: number }

/** Lists the conferences of a project, newest first. */
export async function listConferences(
  db: Db,
  project_id: string,
  { status, friendly_name, created, updated }: ConferenceFilter,
  window: ListWindow,
  limit: number,
): Promise<ConferenceRow[]> {
  let query = conferences(db, project_id).limit(limit)
  if (friendly_name !== undefined) query = query.where('conference.friendly_name', '=', friendly_name)
  if (created?.from !== undefined) query = query.where('conference.created_at', '>=', created.from)
  if (created?.before !== undefined) query = query.where('conference.created_at', '<', created.before)
  if (updated?.from !== undefined) query = query.where('conference.updated_at', '>=', updated.from)
  if (updated?.before !== undefined) query = query.where('conference.updated_at', '<', updated.before)
  if (status === 'completed')
    query = query.where(eb => eb.or([eb('conference.ended_at', 'is not', null), eb.not(liveParticipant(eb))]))
  else if (status !== undefined)
    query = query
      .where('conference.ended_at', 'is', null)
      .where('conference.started_at', status === 'init' ? 'is' : 'is not', null)
      .where(liveParticipant)
  if ('newer_than' in window) {
    const rows = await query
      .where('conference.position', '>', window.newer_than)
      .orderBy('conference.position')
      .execute()
    return rows.reverse().map(shaped)
  }
  if ('older_than' in window) query = query.where('conference.position', '<', window.older_than)
  else query = query.offset(window.offset)
  return (await query.orderBy('conference.position', 'desc').execute()).map(shaped)
}

const participants = (db: Db | Trx, conference_sid: string) =>
  db
    .selectFrom('conference_participant')
    .innerJoin('call', 'call.sid', 'conference_participant.call_sid')
    .selectAll('conference_participant')
    .select(['call.status as call_status', 'call.ended_at as call_ended_at', 'call.from_number', 'call.to_number'])
    .where('conference_participant.conference_sid', '=', conference_sid)

/** Lists the participants who are in the conference, or on their way to it, in the order of their coming. */
export const listParticipants = (db: Db | Trx, conference_sid: string): Promise<ParticipantRow[]> =>
  participants(db, conference_sid)
    .where('conference_participant.left_at', 'is', null)
    .where('call.ended_at', 'is', null)
    .orderBy('conference_participant.created_at')
    .orderBy('conference_participant.call_sid')
    .execute()

/** Lists the calls that the APIs have added to the conference of a name and that have not joined it yet. */
export const callsOnTheirWay = (trx: Trx, project_id: string, friendly_name: string): Promise<HistoryRow[]> =>
  trx
    .selectFrom('conference')
    .innerJoin('conference_participant', 'conference_participant.conference_sid', 'conference.sid')
    .innerJoin('call', 'call.sid', 'conference_participant.call_sid')
    .selectAll('call')
    .where('conference.project_id', '=', project_id)
    .where('conference.friendly_name', '=', friendly_name)
    .where('conference.ended_at', 'is', null)
    .where('conference_participant.joined_at', 'is', null)
    .where('conference_participant.left_at', 'is', null)
    .where('call.ended_at', 'is', null)
    .execute()

/** Finds a participant who is in the conference, or on the way to it, by the sid of its call or by its label. */
export const findParticipant = (
  db: Db | Trx,
  conference_sid: string,
  call_sid_or_label: string,
): Promise<ParticipantRow | undefined> =>
  participants(db, conference_sid)
    .where('conference_participant.left_at', 'is', null)
    .where('call.ended_at', 'is', null)
    .where(eb =>
      eb.or([
        eb('conference_participant.call_sid', '=', call_sid_or_label),
        eb('conference_participant.label', '=', call_sid_or_label),
      ]),
    )
    .executeTakeFirst()

type NewConference = Pick<Conference, 'sid' | 'project_id' | 'account_sid' | 'friendly_name' | 'node_id'>

/** Makes the row of a conference, unless it has one. A node that has its first participant opens it again. */
export async function openConference(trx: Trx, conference: NewConference, now_ms: number): Promise<void> {
  const now = iso(now_ms)
  const still_open = { ended_at: null, reason_ended: null, call_sid_ending: null }
  await trx
    .insertInto('conference')
    .values({ ...conference, ...still_open, created_at: now, started_at: null, updated_at: now })
    .onConflict(conflict => {
      const known = conflict.column('sid')
      const { node_id } = conference
      return node_id === null ? known.doNothing() : known.doUpdateSet({ ...still_open, node_id, updated_at: now })
    })
    .execute()
}

type Claim = NewConference & { readonly node_id: string }

/** Returns the machine of another node that runs the conference of a name. The caller's transaction then claims it. */
export async function keeperOfConference(
  trx: Trx,
  { project_id, friendly_name, node_id }: Claim,
  now_ms: number,
): Promise<string | null> {
  const elsewhere = await trx
    .selectFrom('conference')
    .innerJoin('node', 'node.id', 'conference.node_id')
    .select('node.machine_id')
    .where('conference.project_id', '=', project_id)
    .where('conference.friendly_name', '=', friendly_name)
    .where('conference.ended_at', 'is', null)
    .where('node.id', '!=', node_id)
    .where('node.lost_at', 'is', null)
    .where(eb => eb.or([liveParticipant(eb), eb('conference.updated_at', '>=', iso(now_ms - CLAIM_MS))]))
    .executeTakeFirst()
  return elsewhere?.machine_id ?? null
}

/**
 * Makes a conference the node's. Returns its sid: the APIs may have begun one of this name, whose calls are on their
 * way, and have told that sid.
 */
export async function claimConference(trx: Trx, conference: Claim, now_ms: number): Promise<string> {
  const begun = await trx
    .selectFrom('conference')
    .select('conference.sid')
    .where('conference.project_id', '=', conference.project_id)
    .where('conference.friendly_name', '=', conference.friendly_name)
    .where('conference.ended_at', 'is', null)
    .where('conference.node_id', 'is', null)
    .where(liveParticipant)
    .orderBy('conference.position', 'desc')
    .executeTakeFirst()
  const sid = begun?.sid ?? conference.sid
  await openConference(trx, { ...conference, sid }, now_ms)
  return sid
}

export const changeConference = async (
  trx: Trx,
  sid: string,
  changes: Partial<Pick<Conference, 'started_at' | 'ended_at' | 'reason_ended' | 'call_sid_ending'>>,
  now_ms: number,
): Promise<void> => {
  await trx
    .updateTable('conference')
    .set({ ...changes, updated_at: iso(now_ms) })
    .where('sid', '=', sid)
    .execute()
}

type NewParticipant = Pick<
  Participant,
  | 'conference_sid'
  | 'call_sid'
  | 'project_id'
  | 'label'
  | 'muted'
  | 'coached_call_sid'
  | 'start_on_enter'
  | 'end_on_exit'
  | 'joined_at'
>

/** Adds a participant, or adds it again. A call is in at most one conference. */
export async function addParticipant(trx: Trx, participant: NewParticipant, now_ms: number): Promise<void> {
  const now = iso(now_ms)
  const fresh = { hold: 0, speaking: 0, left_at: null, updated_at: now } as const
  await trx
    .updateTable('conference_participant')
    .set({ left_at: now, updated_at: now })
    .where('call_sid', '=', participant.call_sid)
    .where('conference_sid', '!=', participant.conference_sid)
    .where('left_at', 'is', null)
    .execute()
  await trx
    .insertInto('conference_participant')
    .values({ ...participant, ...fresh, created_at: now, revision: 1 })
    .onConflict(conflict =>
      conflict
        .columns(['conference_sid', 'call_sid'])
        .doUpdateSet(eb => ({ ...participant, ...fresh, revision: eb('conference_participant.revision', '+', 1) })),
    )
    .execute()
}

/** Adds a participant whose call is on its way, unless the node has added it already. */
export async function expectParticipant(
  trx: Trx,
  participant: NewParticipant,
  now_ms: number,
): Promise<ParticipantRow> {
  const now = iso(now_ms)
  await trx
    .insertInto('conference_participant')
    .values({
      ...participant,
      hold: 0,
      speaking: 0,
      left_at: null,
      created_at: now,
      updated_at: now,
      revision: 1,
    })
    .onConflict(conflict => conflict.columns(['conference_sid', 'call_sid']).doNothing())
    .execute()
  return participants(trx, participant.conference_sid)
    .where('conference_participant.call_sid', '=', participant.call_sid)
    .executeTakeFirstOrThrow()
}

type ParticipantChanges = Partial<Pick<Participant, 'muted' | 'hold' | 'coached_call_sid' | 'end_on_exit' | 'left_at'>>

/** Changes a participant and its revision. */
export const changeParticipant = async (
  trx: Trx,
  { conference_sid, call_sid }: Pick<Participant, 'conference_sid' | 'call_sid'>,
  changes: ParticipantChanges,
  now_ms: number,
): Promise<void> => {
  await trx
    .updateTable('conference_participant')
    .set(eb => ({ ...changes, updated_at: iso(now_ms), revision: eb('revision', '+', 1) }))
    .where('conference_sid', '=', conference_sid)
    .where('call_sid', '=', call_sid)
    .execute()
}

/** Notes who speaks. It is what happens, not what somebody wishes, so that it is no new revision. */
export const saveSpeaking = async (
  db: Db,
  conference_sid: string,
  speaking: ReadonlyMap<string, boolean>,
): Promise<void> => {
  for (const [call_sid, on] of speaking)
    await db
      .updateTable('conference_participant')
      .set({ speaking: on ? 1 : 0 })
      .where('conference_sid', '=', conference_sid)
      .where('call_sid', '=', call_sid)
      .execute()
}

/** Removes conferences that were created before `before_ms`, with their participants. */
export async function pruneConferences(db: Db, before_ms: number): Promise<void> {
  const old = db.selectFrom('conference').select('sid').where('created_at', '<', iso(before_ms)).limit(1000)
  const sids = (await old.where(eb => eb.not(liveParticipant(eb))).execute()).map(({ sid }) => sid)
  if (sids.length === 0) return
  await db.deleteFrom('conference_participant').where('conference_sid', 'in', sids).execute()
  await db.deleteFrom('conference').where('sid', 'in', sids).execute()
}
