import { newId } from '../../core/runtime/ids.ts'
import {
  type ConferenceRow,
  expectParticipant,
  findConference,
  findParticipant,
  findRunningConference,
  listParticipants,
  openConference,
  type ParticipantRow,
  participantStatus,
} from '../../core/state/calls/conferences.ts'
import type { Trx } from '../../core/state/index.ts'
import { isRefusal } from '../http/reply.ts'
import { nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { asFlag, changeInConference, kick, type ParticipantChange } from '../live/conferences.ts'
import { conferenceDocument } from '../live/invitations.ts'
import { changed } from './changed.ts'
import { unknownConference } from './conferences.ts'
import { type AskedCall, placingOf, readCall } from './create.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { flagOf, oddFlag, soundIn, urlOf, wholeNumber, wordOf } from './fields.ts'
import { type Form, formOf, withText } from './form.ts'
import { pageByText, voicePageSchema } from './listing.ts'
import { onceByKey } from './once-by-key.ts'
import { place } from './place.ts'
import { accountPath, dateText } from './present.ts'
import { type VoiceContext, voiceRoute } from './route.ts'

const Text = Type.String()
const Flag = Type.Boolean()

const Participant = resource('VoiceParticipant', {
  account_sid: Text,
  call_sid: Text,
  conference_sid: Text,
  label: nullable(Text),
  muted: Flag,
  hold: Flag,
  coaching: Flag,
  call_sid_to_coach: nullable(Text),
  start_conference_on_enter: Flag,
  end_conference_on_exit: Flag,
  status: oneOf('queued', 'ringing', 'connected', 'complete', 'failed'),
  queue_time: Text,
  date_created: Text,
  date_updated: Text,
  uri: Text,
})

const unknownParticipant = (name: string): VoiceRefusal =>
  forReason('not_found', { value: `The participant ${name.slice(0, 60)}` })

const present = (row: ParticipantRow, account_sid: string): Static<typeof Participant> => ({
  account_sid,
  call_sid: row.call_sid,
  conference_sid: row.conference_sid,
  label: row.label,
  muted: row.muted === 1,
  hold: row.hold === 1,
  coaching: row.coached_call_sid !== null,
  call_sid_to_coach: row.coached_call_sid,
  start_conference_on_enter: row.start_on_enter === 1,
  end_conference_on_exit: row.end_on_exit === 1,
  status: participantStatus(row),
  queue_time: '0',
  date_created: dateText(row.created_at),
  date_updated: dateText(row.updated_at),
  uri: `${accountPath(account_sid)}/Conferences/${row.conference_sid}/Participants/${row.call_sid}.json`,
})

/** The place of a participant in its list, known without the row, which may be gone when the next page is read. */
const BY_COMING = {
  textOf: ({ created_at, call_sid }: ParticipantRow) => `${Date.parse(created_at)}-${call_sid}`,
  read: (text: string) => (/^[0-9]{13}-CA[0-9a-f]{32}$/.test(text) ? text : undefined),
}

const LIST = '/Conferences/{conference}/Participants'
const ONE = `${LIST}/{participant}` as const

export const participants = [
  voiceRoute({
    method: 'GET',
    path: LIST,
    suffix: '.json',
    extended: true,
    summary: 'List the participants of a conference, and those on the way to it',
    fields: { 'Muted, Hold, Coaching': 'true or false', 'PageSize, Page': 'as in the list of calls' },
    replies: { 200: voicePageSchema('VoiceParticipantPage', 'participants', Participant) },
    async run({ account, services, params, query, path }) {
      const { db } = services.state
      const conference = await findConference(db, account.project_id, params.conference)
      if (!conference) return unknownConference(params.conference)
      const filter = formOf(query)
      const odd = oddFlag(filter, ['Muted', 'Hold', 'Coaching'])
      if (odd) return odd
      const wanted = (name: string, is: boolean): boolean => (flagOf(filter, name) ?? is) === is
      const rows = (await listParticipants(db, conference.sid)).filter(row => {
        const { muted, hold, coaching } = present(row, account.account_sid)
        return wanted('Muted', muted) && wanted('Hold', hold) && wanted('Coaching', coaching)
      })
      const page = await pageByText(BY_COMING, { query, path }, rows)
      if (isVoiceRefusal(page)) return page
      const shown = page.rows.map(row => present(row, account.account_sid))
      return { status: 200, body: { participants: shown, ...page.about } }
    },
  }),
  voiceRoute({
    method: 'POST',
    path: LIST,
    suffix: '.json',
    extended: true,
    summary: 'Call a number and add the call to a conference, by sid or name; a conference that does not run begins',
    fields: {
      'From, To': 'required; as in a new call, with its other fields',
      Label: 'unique in the conference, at most 128 characters without /; stands for the sid of the call in paths',
      'Muted, StartConferenceOnEnter, EndConferenceOnExit': 'true or false',
      Beep: 'true, false, onEnter, onExit',
      'WaitUrl, WaitMethod': 'what the call hears until the conference starts; empty for silence',
      MaxParticipants: '2 to 250',
      'Coaching, CallSidToCoach':
        'true, which is the default, and the call of the participant who alone hears this one',
      'ConferenceRecord, ConferenceTrim, ConferenceRecordingStatusCallback, …Method, …Event': 'as of <Conference>',
      'ConferenceStatusCallback, …Method, …Event': 'as of <Conference>; events by default start end',
      'MachineDetection, AmdStatusCallback, AmdStatusCallbackMethod':
        'answering-machine detection while the call is in the conference already',
    },
    example: { To: '+2348030000001', From: '$FROM_NUMBER', Label: 'guest' },
    replies: { 201: Participant },
    run: add,
  }),
  voiceRoute({
    method: 'GET',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Fetch a participant, by the sid of its call or its label',
    replies: { 200: Participant },
    async run({ account, services, params }) {
      const { db } = services.state
      const found = await find(db, account.project_id, params)
      return isVoiceRefusal(found) ? found : { status: 200, body: present(found, account.account_sid) }
    },
  }),
  voiceRoute({
    method: 'POST',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Mute a participant, put it on hold, let it coach, or play an announcement to it',
    fields: {
      'Muted, EndConferenceOnExit, BeepOnExit': 'true or false',
      'Hold, HoldUrl, HoldMethod': 'true or false; a sound or document to hear meanwhile, default music; default GET',
      'Coaching, CallSidToCoach': 'true, and the call of the participant who alone hears this one',
      'AnnounceUrl, AnnounceMethod': 'a sound, or a document of Say, Play and Pause, for this participant alone',
    },
    example: { Muted: 'true' },
    replies: { 200: Participant },
    async run(context) {
      const { account, form, params } = context
      const change = readChange(form)
      if (isVoiceRefusal(change)) return change
      return changed(context, async asked => {
        const found = await find(asked.trx, account.project_id, params)
        if (isVoiceRefusal(found)) return found
        const row = await changeInConference(asked, found, change)
        return isRefusal(row) ? row : { status: 200 as const, body: present(row, account.account_sid) }
      })
    },
  }),
  voiceRoute({
    method: 'DELETE',
    path: ONE,
    suffix: '.json',
    extended: true,
    summary: 'Take a participant out of a conference; its document goes on, so that a call without further verbs ends',
    replies: { 204: null },
    async run(context) {
      const { account, params } = context
      return changed(context, async asked => {
        const found = await find(asked.trx, account.project_id, params)
        if (isVoiceRefusal(found)) return found
        await kick(asked, found)
        return { status: 204 as const }
      })
    },
  }),
]

async function find(
  db: Parameters<typeof findConference>[0],
  project_id: string,
  params: { readonly conference: string; readonly participant: string },
): Promise<ParticipantRow | VoiceRefusal> {
  const conference = await findConference(db, project_id, params.conference)
  if (!conference) return unknownConference(params.conference)
  return (await findParticipant(db, conference.sid, params.participant)) ?? unknownParticipant(params.participant)
}

function readChange(form: Form): ParticipantChange | VoiceRefusal {
  const odd = oddFlag(form, ['Muted', 'Hold', 'Coaching', 'EndConferenceOnExit', 'BeepOnExit'])
  if (odd) return odd
  // Music is mostly a static file, whose server answers GET alone.
  const hold_sound = soundIn(form, 'Hold', 'GET')
  if (isVoiceRefusal(hold_sound)) return hold_sound
  const announce = soundIn(form, 'Announce')
  if (isVoiceRefusal(announce)) return announce
  const [muted, hold, coaching] = [flagOf(form, 'Muted'), flagOf(form, 'Hold'), flagOf(form, 'Coaching')]
  const [end_on_exit, beep_on_exit] = [flagOf(form, 'EndConferenceOnExit'), flagOf(form, 'BeepOnExit')]
  const coached = form.text('CallSidToCoach')
  if (coaching === true && coached === undefined) return numbered(20001, 'Coaching needs CallSidToCoach.')
  const change = {
    ...(muted === undefined ? {} : { muted }),
    ...(hold === undefined ? {} : { hold, hold_sound }),
    ...(coaching === false ? { coached_call_sid: null } : coached ? { coached_call_sid: coached } : {}),
    ...(end_on_exit === undefined ? {} : { end_on_exit }),
    ...(beep_on_exit === undefined ? {} : { beep_on_exit }),
    ...(announce === null ? {} : { announce }),
  }
  if (Object.keys(change).length === 0) return numbered(20001, 'Nothing to change is given.')
  return change
}

/** The attributes of <Conference> that fields set. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  Label: 'participantLabel',
  WaitUrl: 'waitUrl',
  WaitMethod: 'waitMethod',
  MaxParticipants: 'maxParticipants',
  ConferenceStatusCallback: 'statusCallback',
  ConferenceStatusCallbackMethod: 'statusCallbackMethod',
  ConferenceRecordingStatusCallback: 'recordingStatusCallback',
  ConferenceRecordingStatusCallbackMethod: 'recordingStatusCallbackMethod',
}
const FLAGS: Readonly<Record<string, string>> = {
  Muted: 'muted',
  StartConferenceOnEnter: 'startConferenceOnEnter',
  EndConferenceOnExit: 'endConferenceOnExit',
}
/** Lists, with what they are when the form does not say. */
const LISTS = {
  ConferenceStatusCallbackEvent: ['statusCallbackEvent', 'start end'],
  ConferenceRecordingStatusCallbackEvent: ['recordingStatusCallbackEvent', undefined],
} as const

const RECORDS = ['do-not-record', 'record-from-start', 'true', 'false'] as const

/** Reads the attributes that are words. An unknown one could end the document, when the call is answered and paid. */
function wordsOf(form: Form): Readonly<Record<string, string>> | VoiceRefusal {
  const odd = oddFlag(form, [...Object.keys(FLAGS), 'Coaching'])
  if (odd) return odd
  const most = wholeNumber(form.text('MaxParticipants') ?? '250')
  if (most === null || most < 2 || most > 250)
    return numbered(20001, 'MaxParticipants is a whole number from 2 to 250.')
  const beep = wordOf(form, 'Beep', ['true', 'false', 'onEnter', 'onExit'], 'true')
  if (isVoiceRefusal(beep)) return beep
  const record = wordOf(form, 'ConferenceRecord', RECORDS, 'do-not-record')
  if (isVoiceRefusal(record)) return record
  const trim = wordOf(form, 'ConferenceTrim', ['trim-silence', 'do-not-trim'], 'trim-silence')
  return isVoiceRefusal(trim) ? trim : { beep, record, trim }
}

/** The document that the new call runs. */
function documentOf(form: Form, words: Readonly<Record<string, string>>, friendly_name: string): string {
  const given = Object.entries(ATTRIBUTES).map(([field, name]) => [name, form.text(field)] as const)
  const lists = Object.entries(LISTS).map(
    ([field, [name, unsaid]]) => [name, form.all(field).join(' ') || unsaid] as const,
  )
  const flags = Object.entries(FLAGS).map(([field, name]) => [name, flagOf(form, field)?.toString()] as const)
  const silence = form.blank('WaitUrl') ? { waitUrl: '' } : {}
  return conferenceDocument(
    { ...Object.fromEntries([...given, ...flags, ...lists]), ...words, ...silence, coach: coached(form) },
    friendly_name,
  )
}

/** The call of the participant who alone hears the new one. Naming it asks for it, unless Coaching says no. */
const coached = (form: Form): string | undefined =>
  flagOf(form, 'Coaching') === false ? undefined : form.text('CallSidToCoach')

/**
 * Refuses what the conference would refuse only when the call has been answered and paid. `sid` is that of the
 * conference that runs.
 */
async function refusedEntry(
  db: Parameters<typeof findConference>[0],
  form: Form,
  sid: string | undefined,
): Promise<VoiceRefusal | null> {
  const label = form.text('Label')
  if (label !== undefined && (label.length > 128 || label.includes('/') || SHAPE_OF_CALL.test(label)))
    return numbered(16024, 'Label has at most 128 characters without /, and is not the sid of a call.')
  const inside = async (named: string) => sid !== undefined && (await findParticipant(db, sid, named)) !== undefined
  if (label !== undefined && (await inside(label)))
    return numbered(16025, `The label ${label} is in use in this conference.`)
  const heard_by = coached(form)
  if (heard_by === undefined) return flagOf(form, 'Coaching') ? numbered(20001, 'Coaching needs CallSidToCoach.') : null
  if (await inside(heard_by)) return null
  return numbered(20001, `CallSidToCoach ${heard_by.slice(0, 60)} is not another call in this conference.`)
}

const SHAPE_OF_CALL = /^CA[0-9a-f]{32}$/i
/** A participant joins at once: its answering-machine detection runs beside the conference, under names of its own. */
const detection = (form: Form): Readonly<Record<string, string | undefined>> => ({
  AsyncAmd: 'true',
  AsyncAmdStatusCallback: form.text('AmdStatusCallback'),
  AsyncAmdStatusCallbackMethod: form.text('AmdStatusCallbackMethod'),
})

const CONFERENCE_SID = /^CF[0-9a-f]{32}$/

type Addition = VoiceContext & { readonly params: { readonly conference: string }; readonly form: Form }

async function add(context: Addition) {
  const answer = await onceByKey(context, {
    prepare: () => readAddition(context),
    // A node may begin the conference meanwhile, or the call may join it at once. So all of it is one transaction.
    make: (trx, asked: AskedCall) => invite(trx, context, asked),
  })
  if (!isVoiceRefusal(answer)) context.services.bus.ring('commands')
  return answer
}

const URLS = ['WaitUrl', 'ConferenceStatusCallback', 'ConferenceRecordingStatusCallback', 'AmdStatusCallback']

async function readAddition(context: Addition): Promise<AskedCall | VoiceRefusal> {
  const { services, form } = context
  for (const field of URLS) {
    const url = urlOf(form, field)
    if (isVoiceRefusal(url)) return url
  }
  const words = wordsOf(form)
  if (isVoiceRefusal(words)) return words
  const named = await conferenceToJoin(services.state.db, context)
  if (isVoiceRefusal(named)) return named
  const Twiml = documentOf(form, words, named.friendly_name)
  return readCall({ ...context, form: withText(form, { Url: undefined, Twiml, ...detection(form) }) })
}

async function invite(
  trx: Trx,
  context: Addition,
  asked: AskedCall,
): Promise<Static<typeof Participant> | VoiceRefusal> {
  const { account, form, now_ms } = context
  const { project_id, account_sid } = account
  const conference = await conferenceToJoin(trx, context)
  if (isVoiceRefusal(conference)) return conference
  const call = await place(trx, placingOf(context, { ...asked, request: { ...asked.request, conference } }))
  if (isVoiceRefusal(call)) return call
  const { sid } = conference
  await openConference(trx, { ...conference, project_id, account_sid, node_id: null }, now_ms)
  const row = await expectParticipant(
    trx,
    {
      conference_sid: sid,
      call_sid: call.sid,
      project_id,
      label: form.text('Label') ?? null,
      muted: asFlag(flagOf(form, 'Muted') === true),
      coached_call_sid: coached(form) ?? null,
      start_on_enter: asFlag(flagOf(form, 'StartConferenceOnEnter') !== false),
      end_on_exit: asFlag(flagOf(form, 'EndConferenceOnExit') === true),
      joined_at: null,
    },
    now_ms,
  )
  return present(row, account_sid)
}

/** The conference that a new call joins: the one that runs, or a new one of this name. */
async function conferenceToJoin(
  db: Parameters<typeof findConference>[0],
  { account: { project_id }, params: { conference: named }, form, now_ms }: Addition,
): Promise<{ readonly sid: string; readonly friendly_name: string } | VoiceRefusal> {
  const running = await runningConference(db, project_id, named, now_ms)
  if (isVoiceRefusal(running)) return running
  const refused = await refusedEntry(db, form, running?.sid)
  if (refused) return refused
  return { sid: running?.sid ?? newId.conference(), friendly_name: running?.friendly_name ?? named }
}

/** The conference that a path names: a sid must be of one that runs; a name may be of none. */
async function runningConference(
  db: Parameters<typeof findConference>[0],
  project_id: string,
  named: string,
  now_ms: number,
): Promise<ConferenceRow | undefined | VoiceRefusal> {
  if (!CONFERENCE_SID.test(named)) return findRunningConference(db, project_id, named, now_ms)
  const row = await findConference(db, project_id, named)
  if (!row) return unknownConference(named)
  if (row.ended_at === null && row.live) return row
  return forReason('state_conflict', { name: `The conference ${named}`, value: 'completed' })
}
