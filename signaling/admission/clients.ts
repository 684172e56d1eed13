import { clientDomain } from '../../core/domain/identity/index.ts'
import { hostOf } from '../../core/domain/sip/address.ts'
import { browserPolicy } from '../b2bua/browser.ts'
import type { CallContext } from '../b2bua/context.ts'
import type { HuntHop } from '../b2bua/hunt.ts'
import { invitationHeaders, type Outgoing, openPolicy } from '../b2bua/routes.ts'

/**
 * Returns the hops to the registered contacts of the project's `client:<name>`, the latest registration first.
 * `parameters` are sent to the client as percent-encoded `X-Parameter-<name>` headers.
 */
export function clientHops(
  ctx: CallContext,
  options: {
    readonly project_id: string
    readonly client: string
    readonly outgoing: Outgoing
    readonly parameters?: Readonly<Record<string, string>>
  },
): HuntHop[] {
  const { project_id, client, outgoing, parameters = {} } = options
  const domain = clientDomain(project_id, ctx.config.domain)
  const headers = {
    ...invitationHeaders(ctx, outgoing, 'customer'),
    To: `<sip:${client}@${domain}>`,
    ...parameterHeaders(parameters),
  }
  return ctx.registrar.clientContacts(project_id, client).map(({ uri, proxy, proven_host, transport }) => {
    const web = transport === 'ws' || transport === 'wss'
    return {
      uri,
      ...(proxy === null ? {} : { proxy }),
      proven_host,
      target: `client:${client}`,
      target_id: null,
      carrier_id: null,
      transport,
      headers,
      policy: web ? browserPolicy(null) : openPolicy(hostOf(proxy ?? uri)),
      redirects: [],
    }
  })
}

const MAX_PARAMETERS = 32
const MAX_VALUE = 1000

function parameterHeaders(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const named = Object.entries(parameters).filter(([name]) => /^[A-Za-z0-9_-]{1,64}$/.test(name))
  return Object.fromEntries(
    named
      .slice(0, MAX_PARAMETERS)
      .map(([name, value]) => [`X-Parameter-${name}`, encodeURIComponent(value).slice(0, MAX_VALUE)]),
  )
}
