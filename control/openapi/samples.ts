/** A program of a few lines that sends one request. */
export interface Sample {
  readonly lang: string
  readonly label: string
  readonly source: string
}

/** A request as a reference shows it. `{name}` in the path is a variable of the sample. */
interface SampleRequest {
  readonly method: string
  readonly path: string
  readonly query?: string
  /** Headers whose values are variables of the sample, by the name of the variable. */
  readonly variables?: Readonly<Record<string, string>>
  readonly idempotent: boolean
  readonly body?: unknown
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const shellName = (name: string): string => name.toUpperCase().replaceAll('-', '_')
const lines = (value: unknown): string => JSON.stringify(value, null, 2)

/** Returns a request to a JSON API as a command. Its variables are those that `bootstrap --shell` prints, and ids. */
export function curlSample({ method, path, query, variables = {}, idempotent, body }: SampleRequest): Sample {
  const url = `$STROWGER_URL${path.replace(/\{(\w+)\}/g, (_, name: string) => `$${shellName(name)}`)}`
  const parts = [
    `curl${method === 'GET' ? '' : ` -X ${method}`} "${url}${query ? `?${query}` : ''}"`,
    '-H "Authorization: Bearer $STROWGER_API_KEY"',
    ...Object.entries(variables).map(([header, name]) => `-H "${header}: $${shellName(name)}"`),
    ...(idempotent ? ['-H "Idempotency-Key: $(date +%s)-$RANDOM"'] : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(lines(body))}`]),
  ]
  return { lang: 'Shell', label: 'curl', source: parts.join(' \\\n  ') }
}

/** Returns the same request for Node.js and browsers. */
export function fetchSample({ method, path, query, variables = {}, idempotent, body }: SampleRequest): Sample {
  const url = `\${process.env.STROWGER_URL}${path.replaceAll('{', '${')}${query ? `?${query}` : ''}`
  const headers = [
    `Authorization: 'Bearer ' + process.env.STROWGER_API_KEY`,
    ...Object.entries(variables).map(([header, name]) => `'${header}': ${name}`),
    ...(idempotent ? ["'Idempotency-Key': crypto.randomUUID()"] : []),
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    `headers: {\n    ${headers.join(',\n    ')},\n  }`,
    ...(body === undefined ? [] : [`body: JSON.stringify(${lines(body).replaceAll('\n', '\n  ')})`]),
  ]
  const source = [
    `const response = await fetch(\`${url}\`, {\n  ${options.join(',\n  ')},\n})`,
    'console.log(response.status, await response.text())',
  ]
  return { lang: 'JavaScript', label: 'fetch', source: source.join('\n') }
}

/** A request of the voice-calls API. The path is relative to the account. */
interface FormRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly suffix: string
  readonly form: Readonly<Record<string, string>>
  readonly library?: string | undefined
}

/** Returns a request of the voice-calls API as a command. A value that begins with `$` is a variable. */
export function formCurlSample({ method, path, suffix, form }: FormRequest): Sample {
  const below = path.replace(/\{(\w+)\}/g, (_, name: string) => `$${shellName(name)}`)
  const fields = Object.entries(form).map(([name, value]) =>
    value.startsWith('$') ? `--data-urlencode "${name}=${value}"` : `--data-urlencode ${quoted(`${name}=${value}`)}`,
  )
  const verb = method === 'GET' ? (fields.length > 0 ? ' -G' : '') : ` -X ${method}`
  const parts = [
    `curl${verb} "$STROWGER_URL/2010-04-01/Accounts/$ACCOUNT_SID${below}${suffix}"`,
    '-u "$ACCOUNT_SID:$AUTH_TOKEN"',
    ...fields,
  ]
  return { lang: 'Shell', label: 'curl', source: parts.join(' \\\n  ') }
}

const camel = (name: string): string => `${name.charAt(0).toLowerCase()}${name.slice(1)}`
const ACTIONS = {
  list: { GET: 'list', POST: 'create' },
  one: { GET: 'fetch', POST: 'update', DELETE: 'remove' },
} as const

/**
 * Returns the same request with the stock Node library of the compatible form. Its names follow from the path:
 * `POST /Calls/{call_sid}` is `client.calls(call_sid).update(…)`. Null for what the library has no name for.
 */
export function librarySample({ method, path, suffix, form, library }: FormRequest): Sample | null {
  const words = path.split('/').filter(word => word !== '')
  const ends_in_one = words.at(-1)?.startsWith('{') === true
  const action = (ACTIONS[ends_in_one ? 'one' : 'list'] as Readonly<Record<string, string>>)[method]
  if (suffix !== '.json' || action === undefined) return null
  const chain = words.map(word => (word.startsWith('{') ? `(${word.slice(1, -1)})` : `.${camel(word)}`)).join('')
  const options = Object.entries(form).map(([name, value]) => {
    const number = /^\d+$/.test(value)
    const written = value.startsWith('$') ? `process.env.${value.slice(1)}` : number ? value : JSON.stringify(value)
    return `  ${camel(name)}: ${written},`
  })
  const given = options.length === 0 ? '' : `{\n${options.join('\n')}\n}`
  const called = library ?? `${chain.slice(1)}.${action}(${given})`
  return {
    lang: 'JavaScript',
    label: 'stock library',
    source: `const answer = await client.${called}\nconsole.log(answer)`,
  }
}
