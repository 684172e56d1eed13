import { wrongTarget } from '../../core/domain/webhooks/target.ts'
import { iso } from '../../core/runtime/clock.ts'
import {
  type ConferenceRow,
  conferenceStatus,
  findConference,
  listConferences,
  listParticipants,
  type ParticipantRow,
  participantStatus,
} from '../../core/state/calls/conferences.ts'
import { pageOf, pageQuery, positionOf } from '../http/paging.ts'
import { type Change, invalid, isRefusal } from '../http/reply.ts'
import {
  Count64,
  described,
  Flag,
  HttpUrl,
  Instant,
  input,
  line,
  list,
  nullable,
  oneOf,
  optional,
  pageSchema,
  resource,
  type Static,
  Type,
} from '../http/schema.ts'
import { announce, changeInConference, endConference, kick } from '../live/conferences.ts'
import { inviteParticipant } from '../live/invitations.ts'
import { route } from './route.ts'

const Text = Type.String()

const Conference = resource('Conference', {
  id: described(Text, '`CF` and 32 hexadecimal digits; the `ConferenceSid` of callbacks.'),
  name: described(Text, 'What the documents call it. A project has one running conference of a name.'),
  status: described(
    oneOf('init', 'in-progress', 'completed'),
    '`init` until the first participant with `startConferenceOnEnter` and another one are in.',
  ),
  created_at: Instant,
  started_at: described(nullable(Instant), 'When it left `init`.'),
  ended_at: described(nullable(Instant), 'Null while it runs, and when the node that ran it was lost.'),
  reason_ended: described(
    nullable(Text),
    'Why it ended, as `ReasonConferenceEnded` of its callback says it, such as `conference-ended-via-api`.',
  ),
  call_id_ending: described(nullable(Text), 'The call whose leaving ended it.'),
})

const Participant = resource('ConferenceParticipant', {
  id: described(Text, 'The id of its call.'),
  conference_id: Text,
  label: described(nullable(Text), '`participantLabel` of its document.'),
  from: described(Text, 'The calling number of its call.'),
  to: described(Text, 'The called number of its call.'),
  status: described(
    oneOf('queued', 'ringing', 'connected', 'complete', 'failed'),
    '`queued` and `ringing`: its call is on the way. Only who is `connected` can be changed.',
  ),
  muted: described(Flag, 'The others do not hear it.'),
  hold: described(Flag, 'It neither hears the others nor is heard; it hears music.'),
  speaking: described(Flag, 'Whether it speaks now, up to half a second late. False while it is muted or on hold.'),
  coached_call_id: described(nullable(Text), 'The call of the only participant who hears it; null: all do.'),
  start_on_enter: described(Flag, 'Whether its coming starts the conference.'),
  end_on_exit: described(Flag, 'Whether its leaving ends the conference.'),
  created_at: Instant,
  joined_at: described(nullable(Instant), 'Null until its call is in the conference.'),
  revision: Count64,
})

const presentConference = (row: ConferenceRow): Static<typeof Conference> => ({
  id: row.sid,
  name: row.friendly_name,
  status: conferenceStatus(row),
  created_at: row.created_at,
  started_at: row.started_at,
  ended_at: row.ended_at,
  reason_ended: row.reason_ended,
  call_id_ending: row.call_sid_ending,
})

const presentParticipant = (row: ParticipantRow): Static<typeof Participant> => ({
  id: row.call_sid,
  conference_id: row.conference_sid,
  label: row.label,
  from: row.from_number,
  to: row.to_number,
  status: participantStatus(row),
  muted: row.muted === 1,
  hold: row.hold === 1,
  speaking: row.speaking === 1,
  coached_call_id: row.coached_call_sid,
  start_on_enter: row.start_on_enter === 1,
  end_on_exit: row.end_on_exit === 1,
  created_at: row.created_at,
  joined_at: row.joined_at,
  revision: row.revision,
})

const Phone = Type.String({ pattern: '^\\+?[0-9]{7,15}$' })

const HttpMethod = oneOf('GET', 'POST')

/** A document of Say, Play and Pause, or a sound, by URL. */
export const HeardRequest = input('HeardRequest', {
  url: described(HttpUrl, 'A sound, or a document of Say, Play and Pause.'),
  method: optional(HttpMethod),
})

/** Reads what is to be heard. Refuses a URL that is not absolute. */
export const soundOf = ({ url, method = 'POST' }: Static<typeof HeardRequest>, pointer = '/url') => {
  const wrong = wrongTarget(url)
  return wrong === null ? { url, method } : invalid(pointer, wrong)
}

const about = (conference: { readonly sid: string; readonly friendly_name: string }, summary: string): Change => ({
  resource: {
    type: 'conference',
    id: conference.sid,
    name: conference.friendly_name,
    href: `/v1/conferences/${conference.sid}`,
  },
  summary,
  before: null,
  after: null,
})

const ONE = '/conferences/{conference_id}'
const MEMBERS = `${ONE}/participants` as const
const MEMBER = `${MEMBERS}/{participant_id}` as const

export const conferences = [
  route({
    method: 'get',
    path: '/conferences',
    summary: 'Conferences of the project, newest first',
    description: 'Those that run and those of the last 30 days. `since` (included) and `before` bound `created_at`.',
    scope: 'live_calls:read',
    query: Type.Object(
      {
        ...pageQuery(200),
        status: optional(oneOf('init', 'in-progress', 'completed')),
        name: optional(line(128)),
        since: optional(Instant),
        before: optional(Instant),
      },
      { additionalProperties: false },
    ),
    replies: { 200: pageSchema(Conference) },
    async run({ db, project, query: { limit = 50, cursor, status, name, since, before } }) {
      const position = positionOf(cursor)
      if (isRefusal(position)) return position
      const filter = {
        ...(status === undefined ? {} : { status }),
        ...(name === undefined ? {} : { friendly_name: name }),
        created: {
          ...(since === undefined ? {} : { from: iso(Date.parse(since)) }),
          ...(before === undefined ? {} : { before: iso(Date.parse(before)) }),
        },
      }
      const window = position.before === undefined ? { offset: 0 } : { older_than: position.before }
      const rows = await listConferences(db, project.id, filter, window, limit + 1)
      const { shown, more } = pageOf(rows, limit, row => [row.position])
      return { status: 200, body: { data: shown.map(presentConference), ...more } }
    },
  }),

  route({
    method: 'get',
    path: ONE,
    summary: 'Read a conference',
    scope: 'live_calls:read',
    replies: { 200: Conference },
    async run({ conference }) {
      return { status: 200, body: presentConference(conference) }
    },
  }),

  route({
    method: 'post',
    path: `${ONE}/end`,
    summary: 'End a conference: everybody leaves it, and their documents continue',
    description: 'Calls that are still on their way to it end. The answer may come before the end.',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'conference.ended' },
    replies: { 200: Conference },
    refusals: ['state_conflict'],
    async run({ db, project, conference, services }) {
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const refused = await endConference(asked, conference)
      if (refused) return refused
      const body = presentConference((await findConference(db, project.id, conference.sid)) ?? conference)
      const change = about(conference, `Ended the conference ${conference.friendly_name}`)
      return { status: 200, body, change, wake: ['commands'] as const }
    },
  }),

  route({
    method: 'post',
    path: `${ONE}/announce`,
    summary: 'Play an announcement once to everybody in a conference',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'conference.announced' },
    body: HeardRequest,
    replies: { 200: Conference },
    refusals: ['state_conflict'],
    example: { url: 'https://app.example.com/closing.wav', method: 'GET' },
    async run({ db, project, conference, body, services }) {
      const sound = soundOf(body)
      if (isRefusal(sound)) return sound
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const refused = await announce(asked, conference, sound)
      if (refused) return refused
      const change = about(conference, `Played ${sound.url} to the conference ${conference.friendly_name}`)
      return { status: 200, body: presentConference(conference), change, wake: ['commands'] as const }
    },
  }),

  route({
    method: 'get',
    path: MEMBERS,
    summary: 'List the participants of a conference and those on the way to it, in order of arrival',
    scope: 'live_calls:read',
    replies: { 200: Type.Object({ data: list(Participant) }, { additionalProperties: false }) },
    async run({ db, conference }) {
      const rows = await listParticipants(db, conference.sid)
      return { status: 200, body: { data: rows.map(presentParticipant) } }
    },
  }),

  route({
    method: 'post',
    path: MEMBERS,
    summary: 'Call a number and add the call to a conference that runs',
    description:
      'The call passes the same admission as one of the voice-calls API: the policy of the project, its ceilings and its money. The participant is `queued` or `ringing` until the call is in the conference.',
    scope: 'service_configuration:write',
    idempotent: true,
    audit: { kind: 'trunks', action: 'conference.participant_added' },
    body: input('AddParticipantRequest', {
      from: described(Phone, 'A number of the project.'),
      to: described(Phone, 'The number that is called.'),
      label: optional(described(line(128), 'A name of the participant.')),
      muted: optional(described(Flag, 'The others do not hear it. Default: false.')),
      start_on_enter: optional(described(Flag, 'Its coming starts the conference. Default: true.')),
      end_on_exit: optional(described(Flag, 'Its leaving ends the conference. Default: false.')),
      timeout_seconds: optional(
        described(Type.Integer({ minimum: 1, maximum: 600 }), 'How long it rings. Default: 60.'),
      ),
    }),
    replies: { 201: Participant },
    refusals: ['state_conflict'],
    example: { from: '+2342010000001', to: '+2348030000001', label: 'guest' },
    async run({ db, project, conference, body, services }) {
      const { label = null, muted = false, start_on_enter = true, end_on_exit = false, timeout_seconds = 60 } = body
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const how = { label, muted, start_on_enter, end_on_exit, timeout_seconds }
      const row = await inviteParticipant(asked, conference, { from: body.from, to: body.to, ...how })
      if (isRefusal(row)) return row
      const headers = { Location: `/v1/conferences/${conference.sid}/participants/${row.call_sid}` }
      const change = about(conference, `Called ${body.to} into the conference ${conference.friendly_name}`)
      const shown = presentParticipant(row)
      return { status: 201, revision: row.revision, headers, body: shown, change, wake: ['commands'] as const }
    },
  }),

  route({
    method: 'get',
    path: MEMBER,
    summary: 'Read a participant, by the id of its call',
    scope: 'live_calls:read',
    replies: { 200: Participant },
    async run({ participant }) {
      return { status: 200, revision: participant.revision, body: presentParticipant(participant) }
    },
  }),

  route({
    method: 'patch',
    path: MEMBER,
    summary: 'Mute a participant, put it on hold, let it coach, or say whether its leaving ends the conference',
    description: 'Fields that are absent stay as they are. The node carries the change out within moments.',
    scope: 'service_configuration:write',
    if_match: 'participant',
    audit: { kind: 'trunks', action: 'conference.participant_changed' },
    body: input('UpdateParticipantRequest', {
      muted: optional(Flag),
      hold: optional(Flag),
      hold_url: optional(described(nullable(HttpUrl), 'What it hears on hold, with `hold`; null: the usual music.')),
      coached_call_id: optional(
        described(nullable(Text), 'The call of the participant who alone hears this one; null: all hear it.'),
      ),
      end_on_exit: optional(Flag),
      beep_on_exit: optional(Flag),
    }),
    replies: { 200: Participant },
    refusals: ['state_conflict'],
    example: { muted: true },
    async run({ db, project, conference, participant, body, services }) {
      const { hold_url, coached_call_id, ...rest } = body
      const wrong = typeof hold_url === 'string' ? wrongTarget(hold_url) : null
      if (wrong !== null) return invalid('/hold_url', wrong)
      if (Object.keys(body).length === 0) return invalid('', 'changes nothing')
      const change = {
        ...rest,
        ...(hold_url === undefined
          ? {}
          : { hold_sound: hold_url === null ? null : { url: hold_url, method: 'POST' as const } }),
        ...(coached_call_id === undefined ? {} : { coached_call_sid: coached_call_id }),
      }
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const saved = await changeInConference(asked, participant, change)
      if (isRefusal(saved)) return saved
      return {
        status: 200,
        revision: saved.revision,
        body: presentParticipant(saved),
        change: {
          ...about(conference, `Changed ${participant.call_sid} in the conference ${conference.friendly_name}`),
          before: presentParticipant(participant),
          after: presentParticipant(saved),
          from_revision: participant.revision,
          to_revision: saved.revision,
        },
        wake: ['commands'] as const,
      }
    },
  }),

  route({
    method: 'post',
    path: `${MEMBER}/announce`,
    summary: 'Play an announcement once to one participant',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'conference.announced' },
    body: HeardRequest,
    replies: { 200: Participant },
    refusals: ['state_conflict'],
    example: { url: 'https://app.example.com/your-turn.wav', method: 'GET' },
    async run({ db, project, conference, participant, body, services }) {
      const sound = soundOf(body)
      if (isRefusal(sound)) return sound
      const asked = { trx: db, services, project_id: project.id, now_ms: services.clock.now() }
      const saved = await changeInConference(asked, participant, { announce: sound })
      if (isRefusal(saved)) return saved
      const change = about(conference, `Played ${sound.url} to ${participant.call_sid}`)
      return { status: 200, body: presentParticipant(saved), change, wake: ['commands'] as const }
    },
  }),

  route({
    method: 'delete',
    path: MEMBER,
    summary: 'Take a participant out of a conference; its document goes on, so that a call without further verbs ends',
    scope: 'service_configuration:write',
    audit: { kind: 'trunks', action: 'conference.participant_removed' },
    replies: { 204: null },
    async run({ db, project, conference, participant, services }) {
      await kick({ trx: db, services, project_id: project.id, now_ms: services.clock.now() }, participant)
      const change = about(conference, `Took ${participant.call_sid} out of ${conference.friendly_name}`)
      return { status: 204, change, wake: ['commands'] as const }
    },
  }),
]
