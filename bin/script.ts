import { appendFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Command, Option } from 'commander'
import { documentText } from '../core/domain/webhooks/document.ts'
import { createHttpClient } from '../core/runtime/http/index.ts'
import { createVoiceRequester } from '../core/runtime/voice-request.ts'
import { type Advice, checkDocument } from '../markup/check.ts'
import type { Fetch, Fetched, RunKind, StartFacts } from '../markup/interpreter/types.ts'
import { readText } from './files.ts'
import { theseSettings } from './installation.ts'
import { orSayWhy } from './say.ts'
import type { Habits } from './script/simulated.ts'
import { ScriptTerminal } from './script/terminal.ts'
import { fail, give, tell } from './terminal.ts'

const KINDS: readonly RunKind[] = ['call', 'whisper', 'queue_wait', 'conference_wait']

/** The commands `strowger script check FILE` and `strowger script run FILE|URL`. */
export function scriptCommand(): Command {
  const command = new Command('script')
  command
    .command('check')
    .description('list everything that is wrong or doubtful in a document; exit code 1 when there is an error')
    .argument('<file>', 'document, - for standard input')
    .option('--url <url>', 'where it will be served from; without it the document is taken as inline')
    .addOption(new Option('--kind <kind>', 'what the document is').choices(KINDS).default('call'))
    .option('--json', 'print the findings as JSON')
    .action((file: string, options: { url?: string; kind: RunKind; json?: boolean }) => {
      const text = readText(file)
      const result = checkDocument(text, { kind: options.kind, url: options.url ?? null })
      if (options.json) give(`${JSON.stringify(result)}\n`)
      else for (const advice of result.advice) tell(`${file}:${line(advice)}\n`)
      if (!result.ok) fail()
    })
  command
    .command('run')
    .description('run a script in the terminal: speech is printed, keys and words are typed, `h` hangs up')
    .argument('<document>', 'a file (- is standard input), or the URL of a voice application')
    .option('--url <url>', 'where a file is served from, for relative URLs')
    .option('--from <number>', 'caller', '+2348030000099')
    .option('--to <number>', 'called number', '+2342010000001')
    .option('--unanswered', 'begin before the call is answered')
    .option('--fallback <url>', 'fallback URL')
    .option('--token <token>', 'auth token that signs the requests', 'terminal')
    .option('--log <file>', 'write the run log, for `strowger replay`')
    .addOption(
      new Option('--child <end>', 'how dialled calls end')
        .choices(['answered', 'busy', 'no-answer', 'failed'])
        .default('answered'),
    )
    .action((document: string, options: RunOptions) => orSayWhy(() => run(document, options)))
  return command
}

interface RunOptions {
  readonly url?: string
  readonly from: string
  readonly to: string
  readonly unanswered?: boolean
  readonly fallback?: string
  readonly token: string
  readonly log?: string
  readonly child: 'answered' | NonNullable<Habits['child']>
}

async function run(document: string, options: RunOptions): Promise<void> {
  const config = theseSettings()
  const http = createHttpClient({ allow_private: config.allow_private_webhooks, user_agent: 'strowger-script' })
  const requester = createVoiceRequester({ http })
  const remote = /^https?:\/\//i.test(document)
  const text = remote ? null : readText(document)
  const facts = terminalFacts(remote ? document : (options.url ?? null), text, options)
  const standard = [
    ['CallSid', facts.call_sid],
    ['AccountSid', facts.account_sid],
    ['From', options.from],
    ['To', options.to],
    ['CallStatus', options.unanswered ? 'ringing' : 'in-progress'],
    ['Direction', 'inbound'],
    ['ApiVersion', '2010-04-01'],
  ] as const
  // For a file with a URL, the file answers the first request.
  let first = options.url === undefined ? null : text
  const fetchDocument = async (command: Fetch): Promise<Fetched['result']> => {
    if (first !== null) {
      const served = { ok: true, text: first, content_type: 'text/xml', final_url: command.url } as const
      first = null
      return served
    }
    const parameters = [...standard, ...Object.entries(command.parameters)]
    const { url, method } = command
    const reply = await requester.send({ url, method, parameters, auth_token: options.token, reply: 'document' })
    if (!reply.ok) return { ok: false, number: reply.number, detail: reply.detail }
    const final_url = reply.redirects === 0 ? url : reply.url
    return { ok: true, ...documentText({ content_type: reply.headers['content-type'], body: reply.body }), final_url }
  }
  const { log } = options
  if (log !== undefined) writeFileSync(log, '', { mode: 0o600 })
  const terminal = new ScriptTerminal({
    facts,
    habits: options.child === 'answered' ? {} : { child: options.child },
    print: line => void tell(`${line}\n`),
    fetch: fetchDocument,
    ...(log === undefined ? {} : { log: entry => appendFileSync(log, `${entry}\n`) }),
  })
  if (document === '-') terminal.end()
  else {
    const input = createInterface({ input: process.stdin })
    input.on('line', typed => terminal.type(typed))
    input.on('close', () => terminal.end())
    void terminal.over.then(() => input.close())
  }
  await terminal.over
  await http.close()
}

/** Returns the facts of a run without a telephone. A document without a URL is taken as inline. */
export function terminalFacts(
  url: string | null,
  text: string | null,
  options: Pick<RunOptions, 'from' | 'to' | 'unanswered' | 'fallback'>,
): StartFacts {
  return {
    kind: 'call',
    entry: url === null ? { kind: 'inline', text: text ?? '' } : { kind: 'request', url, method: 'POST' },
    fallback: options.fallback === undefined ? null : { url: options.fallback, method: 'POST' },
    leg: { answered: !options.unanswered, direction: 'inbound', sip: true, from: options.from, to: options.to },
    account_sid: `AC${'0'.repeat(32)}`,
    call_sid: `CA${'0'.repeat(32)}`,
    speech: {
      voices: [],
      languages: [],
      default_voice: 'man',
      default_language: 'en-US',
      recognizer: true,
      transcriber: false,
    },
    siprec_connectors: [],
  }
}

function line({ line, column, level, number, rule, detail, suggestion }: Advice): string {
  const what = number === null ? rule : `${rule} ${number}`
  return `${line}:${column}: ${level}: ${detail} [${what}]${suggestion === null ? '' : ` — ${suggestion}`}`
}
