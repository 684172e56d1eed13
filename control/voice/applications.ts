import {
  findApplication,
  listApplications,
  type VoiceApplicationRow,
} from '../../core/state/configuration/voice-applications.ts'
import { nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'
import { forReason, isVoiceRefusal } from './errors.ts'
import { pageByText, voicePageSchema } from './listing.ts'
import { API_VERSION, accountPath, dateText } from './present.ts'
import { voiceRoute } from './route.ts'

/** The voice applications of the project, to read. */

const Text = Type.String()
const TextOrNull = nullable(Text)
const HttpMethod = oneOf('GET', 'POST')

/** What calls of an application, and of the numbers that point to it, are answered by. */
export const applicationUrls = {
  voice_url: TextOrNull,
  voice_method: HttpMethod,
  voice_fallback_url: TextOrNull,
  voice_fallback_method: HttpMethod,
  status_callback: TextOrNull,
  status_callback_method: HttpMethod,
}

export const urlsOf = (row: VoiceApplicationRow) => ({
  voice_url: row.voice_url,
  voice_method: row.voice_method,
  voice_fallback_url: row.fallback_url,
  voice_fallback_method: row.fallback_method,
  status_callback: row.status_callback_url,
  status_callback_method: row.status_callback_method,
})

const Application = resource('VoiceApplicationResource', {
  sid: Text,
  account_sid: Text,
  api_version: Text,
  friendly_name: Text,
  ...applicationUrls,
  voice_caller_id_lookup: Type.Boolean(),
  public_application_connect_enabled: Type.Boolean(),
  date_created: Text,
  date_updated: Text,
  uri: Text,
})

const present = (row: VoiceApplicationRow, account_sid: string): Static<typeof Application> => ({
  sid: row.id,
  account_sid,
  api_version: API_VERSION,
  friendly_name: row.name,
  ...urlsOf(row),
  voice_caller_id_lookup: false,
  public_application_connect_enabled: false,
  date_created: dateText(row.created_at),
  date_updated: dateText(row.updated_at),
  uri: `${accountPath(account_sid)}/Applications/${row.id}.json`,
})

/** The place of an application in its list: by name. A tab stands before all that names have. */
const BY_NAME = {
  textOf: ({ name, id }: VoiceApplicationRow) => `${name}\t${id}`,
  read: (text: string) => (text.includes('\t') ? text : undefined),
}

export const applications = [
  voiceRoute({
    method: 'GET',
    path: '/Applications',
    suffix: '.json',
    extended: true,
    summary: 'List the voice applications of the project, by name',
    fields: { FriendlyName: 'exact', 'PageSize, Page': 'as in the list of calls' },
    replies: { 200: voicePageSchema('VoiceApplicationPage', 'applications', Application) },
    async run({ account, services, query, path }) {
      const name = query.get('FriendlyName')
      const all = await listApplications(services.state.db, account.project_id)
      const page = await pageByText(
        BY_NAME,
        { query, path },
        all.filter(row => !name || row.name === name),
      )
      if (isVoiceRefusal(page)) return page
      const shown = page.rows.map(row => present(row, account.account_sid))
      return { status: 200, body: { applications: shown, ...page.about } }
    },
  }),
  voiceRoute({
    method: 'GET',
    path: '/Applications/{application_sid}',
    suffix: '.json',
    extended: true,
    summary: 'Fetch a voice application',
    replies: { 200: Application },
    async run({ account, services, params }) {
      const row = await findApplication(services.state.db, account.project_id, params.application_sid)
      if (!row) return forReason('not_found', { value: `The application ${params.application_sid}` })
      return { status: 200, body: present(row, account.account_sid) }
    },
  }),
]
