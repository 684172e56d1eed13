import twilio from 'twilio'

/** The stock helper library, unmodified except for the host, and every request that it has made. */
interface StockClient {
  readonly client: ReturnType<typeof twilio>
  /** `METHOD /path` below the account, without the query. */
  readonly requests: readonly string[]
}

interface Account {
  readonly base_url: string
  readonly account_sid: string
  readonly auth_token: string
}

class ElsewhereClient extends twilio.RequestClient {
  readonly #base_url: string
  readonly requests: string[] = []
  constructor(base_url: string) {
    super()
    this.#base_url = base_url
  }
  override request<T>(options: Parameters<twilio.RequestClient['request']>[0]) {
    const [path = ''] = options.uri.replace(/^https:\/\/[^/]+\/2010-04-01\/Accounts\/AC[0-9a-f]{32}/, '').split('?')
    this.requests.push(`${options.method.toUpperCase()} ${path}`)
    const uri = options.uri.replace(/^https:\/\/[^/]+/, this.#base_url)
    return super.request<T>({ ...options, uri } as never)
  }
}

export function stockClient({ base_url, account_sid, auth_token }: Account): StockClient {
  const httpClient = new ElsewhereClient(base_url)
  return { client: twilio(account_sid, auth_token, { httpClient }), requests: httpClient.requests }
}
