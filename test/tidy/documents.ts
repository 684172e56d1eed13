import { readdirSync, readFileSync } from 'node:fs'
import type { Route } from '../../control/http/route.ts'
import { OPERATOR_ROUTES } from '../../control/operator/index.ts'
import { V1_ROUTES } from '../../control/v1/index.ts'
import { VOICE_ROUTES } from '../../control/voice/index.ts'
import { REASONS, templateInWords } from '../../core/domain/reasons/index.ts'
import { VARIABLES } from '../../core/runtime/config.ts'
import { markdownTable } from '../../markup/verbs/table.ts'
import { shownRows } from '../conformance/markup/effects.ts'
import { examples } from '../conformance/markup/examples.ts'
import { testTexts } from '../conformance/markup/fixtures.ts'
import { edgeRows } from '../support/edges.ts'
import { factOf, worldCases } from '../support/sip-world.ts'
import { consoleTypes } from './console-types.ts'
import { DECISION_INDEX, decisions, statusCell } from './decisions.ts'
import { consoleElements } from './markup-elements.ts'
import { readerRows } from './readers.ts'
import { voiceElements } from './voice-package.ts'

/** A document generated from the code. `npm run documents` writes it; tidy fails when it is out of date. */
interface Generated {
  readonly path: string
  readonly text: string
}

const NOTICE = '<!-- Made from the code by `npm run documents`; do not edit. -->'

const FLOW_TABLE = '<!-- Made from test/support/edges.ts by `npm run documents`; do not edit. -->'

const cell = (value: string | number | null): string => (value === null ? '–' : String(value).replaceAll('|', '\\|'))
const table = (head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string =>
  [head, head.map(() => '---'), ...rows].map(row => `| ${row.map(cell).join(' | ')} |`).join('\n')

const errors = (): string =>
  [
    '# Reasons',
    '',
    'Every refusal and every end of a call has one of these reasons. The reason is the `code` of problem documents and the',
    'text of the SIP `Reason` header. Call records and traces show it too. `{…}` in a sentence is the offending value.',
    '',
    table(
      ['reason', 'SIP', 'HTTP', 'number', 'whose', 'sentence', 'what to do'],
      Object.entries(REASONS).map(([name, entry]) => [
        `\`${name}\``,
        entry.sip,
        entry.http,
        entry.voice ?? entry.sip_number,
        entry.blame,
        templateInWords(entry.sentence),
        entry.mend,
      ]),
    ),
  ].join('\n')

const readers = (): string =>
  [
    '# What we read of SIP',
    '',
    'Each header and body has one reader, which signaling, edge, media and ladder call: strict in what we send, generous',
    'in what we take, silent about nothing. A reader returns what is needed and notes on the rest, which stand among the',
    'events of the call; it refuses only when what is needed is missing. `test/tidy/readers.ts` refuses a second reader.',
    '',
    table(['headers', 'what is read', 'reader', 'callers'], readerRows()),
    '',
    '## What devices of the world send',
    '',
    'Each case is a file of `fixtures/sip/world` and runs in `test/flows/sip-world.test.ts`, as the INVITE of a trunk and',
    'as the answer of a target. The results are the final status of the INVITE, and what the caller gets of the answer.',
    '',
    table(['case', 'device', 'odd', 'right', 'INVITE', 'answer'], caseRows()),
  ].join('\n')

const caseRows = (): string[][] =>
  worldCases().map(one => {
    const ways = factOf(one, 'ways', 'invite answer')
    return [
      one.name,
      ...['device', 'odd', 'right'].map(fact => (one.facts.get(fact) ?? []).join(' ')),
      ways.includes('invite') ? factOf(one, 'status', '200') : '–',
      ways.includes('answer') ? factOf(one, 'answered', '200') : '–',
    ]
  })

const endpoints = (): string =>
  [
    '# The management API',
    '',
    'The API is served below `/v1`. On a running platform `/docs` is the reference with all schemas, and',
    '`/v1/openapi.json` is the OpenAPI document.',
    '',
    routeTable(V1_ROUTES),
    '',
    '## For operators',
    '',
    'Served below `/operator/v1`, to keys of operators from `STROWGER_OPERATOR_SOURCES`; `/operator/v1/openapi.json` is the document.',
    '',
    routeTable(OPERATOR_ROUTES),
    '',
    '## The voice-calls API',
    '',
    'Served below `/2010-04-01/Accounts/{AccountSid}`. Paths marked `spec` are served to every account. Those marked',
    '`extended` are served to accounts with `voice_api: extended`; for all others they are 404 `voice_route_not_proxied`.',
    '',
    table(
      ['method', 'path', 'served to', 'what', 'fields'],
      VOICE_ROUTES.map(({ method, path, suffix, extended, summary, fields = {} }) => [
        method,
        `\`${path}${suffix}\``,
        extended ? 'extended' : 'spec',
        summary,
        Object.entries(fields)
          .map(([names, rule]) => `${names}: ${rule}`)
          .join('; '),
      ]),
    ),
  ].join('\n')

const routeTable = (routes: readonly Route[]): string =>
  table(
    ['method', 'path', 'scope', 'what'],
    routes.map(route => [
      route.method.toUpperCase(),
      `\`${route.path}\``,
      route.scope === null ? 'any key' : `\`${route.scope}\``,
      route.summary,
    ]),
  )

const configuration = (): string =>
  [
    '# Configuration',
    '',
    'Variables of the environment, or of `.env` in a checkout. `bin/strowger config` prints the values that count, and',
    '`bin/strowger config explain https-port` what there is to know of one. A start tells all invalid ones at once.',
    '',
    'A secret may stand in a file: `STROWGER_SMTP_URL_FILE=/run/secrets/smtp` in place of `STROWGER_SMTP_URL`, or a',
    'systemd credential of the same name (`LoadCredential=STROWGER_MASTER_KEY:/etc/strowger/master.key`).',
    '',
    table(
      ['variable', 'default', 'secret', 'meaning'],
      Object.values(VARIABLES).map(variable => [
        `\`${variable.name}\``,
        variable.default === '' ? '' : `\`${variable.default}\``,
        variable.secret ? 'yes' : '',
        variable.meaning,
      ]),
    ),
  ].join('\n')

const markup = (): string =>
  [
    '# Markup: verbs and attributes',
    '',
    'The table lists each element with its attributes, the fault number of an invalid value, and the tests that use it.',
    'Column `acts`: `yes` is shown by a test, which runs a document with and without it (`fixtures/markup/effects.txt`).',
    '`read, not acted on` leaves a warning at most.',
    '',
    markdownTable(testTexts(), shownRows()),
    '## Examples',
    '',
    'Each is a whole document. Run one, here `say.xml`, with the variables of [voice-api.md](voice-api.md):',
    '',
    '```sh',
    'curl -sS --fail -u "$ACCOUNT_SID:$AUTH_TOKEN" "$BASE_URL/2010-04-01/Accounts/$ACCOUNT_SID/Calls.json" \\',
    '  --data-urlencode "To=+2348030000001" --data-urlencode "From=$FROM" --data-urlencode "Twiml@say.xml"',
    '```',
    '',
    ...examples().flatMap(({ name, text }) => [`\`${name}.xml\``, '', `\`\`\`xml\n${text}\`\`\``, '']),
  ].join('\n')

const decisionIndex = (): string => {
  const all = decisions()
  return [
    '# Decisions',
    '',
    'These records explain why the code is as it is. Each has the next free number of its range and says what was decided,',
    'which options lost, and what it costs. What has no option that lost stands in the guide of its area. A later',
    'choice mends the record that it changes.',
    '',
    table(
      ['record', 'status'],
      all.map(decision => [`[${decision.number}](${decision.file}) ${decision.title}`, statusCell(decision, all)]),
    ),
  ].join('\n')
}

/** Generates the last table of docs/drachtio.md. The rest of that document is written by hand. */
function drachtio(): Generated {
  const path = 'docs/drachtio.md'
  const [by_hand = ''] = readFileSync(path, 'utf8').split(FLOW_TABLE)
  const files = readdirSync('test/flows').map(name => name.replace(/\.test\.ts$/, ''))
  const rows = table(['flow file', 'embedded edge', 'drachtio-server v0.9.10'], edgeRows(files.sort()))
  return { path, text: `${by_hand}${FLOW_TABLE}\n\n${rows}\n` }
}

export const generatedDocuments = (): Generated[] => [
  ...[
    { path: 'docs/errors.md', text: errors() },
    { path: 'docs/api.md', text: endpoints() },
    { path: 'docs/readers.md', text: readers() },
    { path: 'docs/configuration.md', text: configuration() },
    { path: 'docs/markup.md', text: markup() },
    { path: DECISION_INDEX, text: decisionIndex() },
  ].map(({ path, text }) => ({ path, text: `${NOTICE}\n\n${text.trimEnd()}\n` })),
  drachtio(),
  { path: 'control/console/lib/api-types.ts', text: consoleTypes() },
  { path: 'control/console/lib/markup-elements.ts', text: consoleElements() },
  { path: 'packages/voice/src/elements.ts', text: voiceElements() },
]
