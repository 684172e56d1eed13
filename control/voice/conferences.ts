import {
  type ConferenceRow,
  conferenceStatus,
  findConference,
  listConferences,
} from '../../core/state/calls/conferences.ts'
import { nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { announce, endConference } from '../live/conferences.ts'
import { changed } from './changed.ts'
import { forReason, isVoiceRefusal, numbered, type VoiceRefusal } from './errors.ts'
import { soundIn } from './fields.ts'
import { readRange, voicePageOf, voicePageSchema } from './listing.ts'
import { API_VERSION, accountPath, dateText } from './present.ts'
import { voiceRoute } from './route.ts'

const Text = Type.String()
const TextOrNull = nullable(Text)

const Conference = resource('VoiceConference', {
  sid: Text,
  account_sid: Text,
  api_version: Text,
  friendly_name: Text,
  region: Type.Null(),
  status: oneOf('init', 'in-progress', 'completed'),
  reason_conference_ended: TextOrNull,
  call_sid_ending_conference: TextOrNull,
  date_created: Text,
  date_updated: Text,
  uri: Text,
  subresource_uris: resource('VoiceConferenceSubresources', { participants: Text, recordings: Text }),
})

export const unknownConference = (sid: string): VoiceRefusal =>
  forReason('not_found', { value: `The conference ${sid.slice(0, 60)}` })

function presentConference(row: ConferenceRow): Static<typeof Conference> {
  const path = `${accountPath(row.account_sid)}/Conferences/${row.sid}`
  return {
    sid: row.sid,
    account_sid: row.account_sid,
    api_version: API_VERSION,
    friendly_name: row.friendly_name,
    region: null,
    status: conferenceStatus(row),
    reason_conference_ended: row.reason_ended,
    call_sid_ending_conference: row.call_sid_ending,
    date_created: dateText(row.created_at),
    date_updated: dateText(row.updated_at),
    uri: `${path}.json`,
    subresource_uris: { participants: `${path}/Participants.json`, recordings: `${path}/Recordings.json` },
  }
}

const STATUSES = ['init', 'in-progress', 'completed'] as const

export const conferences = [
  voiceRoute({
    method: 'GET',
    path: '/Conferences',
    suffix: '.json',
    extended: true,
    summary: 'List the conferences of the account, most recent first',
    fields: {
      Status: 'init, in-progress (the default) or completed',
      FriendlyName: 'exact',
      'DateCreated, DateCreated<, DateCreated>, DateUpdated, DateUpdated<, DateUpdated>':
        'YYYY-MM-DD or ISO 8601, both ends included',
      'PageSize, Page': 'as in the list of calls',
    },
    replies: { 200: voicePageSchema('VoiceConferencePage', 'conferences', Conference) },
    async run({ account, services, query, path }) {
      const asked = query.get('Status') || 'in-progress'
      const status = STATUSES.find(known => known === asked)
      if (status === undefined)
        return numbered(20001, `Status ${asked.slice(0, 60)} is not the status of a conference.`)
      const created = readRange(query, 'DateCreated')
      if (isVoiceRefusal(created)) return created
      const updated = readRange(query, 'DateUpdated')
      if (isVoiceRefusal(updated)) return updated
      const friendly_name = query.get('FriendlyName')
      const filter = { created, updated, status, ...(friendly_name ? { friendly_name } : {}) }
      const page = await voicePageOf({ query, path }, (window, limit) =>
        listConferences(services.state.db, account.project_id, filter, window, limit),
      )
      if (isVoiceRefusal(page)) return page
      return { status: 200, body: { conferences: page.rows.map(presentConference), ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Conferences/{conference}',
    suffix: '.json',
    extended: true,
    summary: 'Fetch a conference',
    replies: { 200: Conference },
    async run({ account, services, params }) {
      const row = await findConference(services.state.db, account.project_id, params.conference)
      return row ? { status: 200, body: presentConference(row) } : unknownConference(params.conference)
    },
  }),
  voiceRoute({
    method: 'POST',
    path: '/Conferences/{conference}',
    suffix: '.json',
    extended: true,
    summary: 'End a conference, or play an announcement to everybody in it',
    fields: {
      Status: 'completed: everybody leaves; their documents go on',
      'AnnounceUrl, AnnounceMethod': 'a sound, or a document of Say, Play and Pause',
    },
    example: { Status: 'completed' },
    replies: { 200: Conference },
    async run(context) {
      const { account, form, params } = context
      const status = form.text('Status')
      if (status !== undefined && status !== 'completed')
        return numbered(20001, `Status ${status.slice(0, 60)} is not completed.`)
      const sound = soundIn(form, 'Announce')
      if (isVoiceRefusal(sound)) return sound
      if (status === undefined && sound === null) return numbered(20001, 'Give Status or AnnounceUrl.')
      return changed(context, async asked => {
        const row = await findConference(asked.trx, account.project_id, params.conference)
        if (!row) return unknownConference(params.conference)
        const refused = status === undefined ? null : await endConference(asked, row)
        const unheard = refused === null && sound ? await announce(asked, row, sound) : null
        return refused ?? unheard ?? { status: 200 as const, body: presentConference(row) }
      })
    },
  }),
]
