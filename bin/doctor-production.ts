import type { Settings } from '../core/runtime/config.ts'
import { TREE } from '../core/runtime/tree.ts'

/** What fits a trial and not a public service: a sentence for each, with the variable that mends it. */
export function productionWarnings(settings: Settings): string[] {
  const {
    host,
    base_url,
    https_port,
    trusted_proxies,
    domain,
    data_dir,
    sandbox,
    tls,
    acme,
    log_level,
    smtp_url,
    print_secrets,
    roles,
  } = settings
  if (isLoopback(host))
    return [`STROWGER_HOST=${host}: only this machine reaches it; the warnings for a public service are left out`]
  const encrypted = base_url.startsWith('https:')
  const proxied = encrypted && https_port === null && roles.has('control')
  const { allow_private_webhooks, allow_private_peers } = settings
  const checks: readonly (readonly [boolean, string])[] = [
    [
      sandbox && roles.has('edge') && roles.has('signaling'),
      'the sandbox carrier runs, and plays the network for projects in the sandbox: STROWGER_SANDBOX=off',
    ],
    [
      !encrypted,
      `${base_url} sends keys and passwords in clear: set STROWGER_HTTPS_PORT, or put HTTPS before it and set STROWGER_BASE_URL`,
    ],
    [
      proxied && trusted_proxies.length === 0,
      'limits count everybody behind the proxy as one client: name it in STROWGER_TRUSTED_PROXIES',
    ],
    [
      tls === null && acme === null && roles.has('edge'),
      'SIP over TLS shows a certificate of our own, which no peer trusts: set STROWGER_TLS_CERT and _KEY, or STROWGER_ACME_NAMES',
    ],
    [domain === 'localhost', "trunks' signaling names end in localhost: set STROWGER_DOMAIN"],
    [
      allow_private_webhooks.includes('loopback'),
      'webhooks of customers reach services of this machine: set STROWGER_ALLOW_PRIVATE_WEBHOOKS=none',
    ],
    [
      allow_private_peers.includes('loopback'),
      'customers may send SIP to services of this machine: set STROWGER_ALLOW_PRIVATE_PEERS=none',
    ],
    [smtp_url === null, 'no alerts are sent by mail: set STROWGER_SMTP_URL'],
    [print_secrets, 'each start prints secrets into its log: STROWGER_PRINT_SECRETS=off'],
    [log_level === 'debug' || log_level === 'trace', `the log is for developers: STROWGER_LOG=info`],
    [
      data_dir.startsWith(`${TREE}/`),
      `${data_dir} is inside the checkout: set STROWGER_DATA, such as /var/lib/strowger`,
    ],
  ]
  return checks.filter(([applies]) => applies).map(([, sentence]) => sentence)
}

const isLoopback = (host: string): boolean => /^(127\.|::1$)/.test(host)
