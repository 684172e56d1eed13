/** The scopes of an API key (spec, "Scopes"). */
export const SCOPES = [
  'organization:read',
  'call_history:read',
  'live_calls:read',
  'call_diagnostics:read',
  'service_configuration:read',
  'service_configuration:write',
  'numbers:manage',
  'numbers:order',
  'billing:read',
  'recordings:manage',
  'developers:manage',
  'tests:manage',
  'subaccounts:read',
  'subaccounts:write',
  'audit:read',
] as const

export type Scope = (typeof SCOPES)[number]

/** The scopes of an operator's key for /operator/v1 (design section 10). */
export const OPERATOR_SCOPES = [
  'operator:read',
  'operator:customers',
  'operator:money',
  'operator:network',
  'operator:fraud',
] as const

export type OperatorScope = (typeof OPERATOR_SCOPES)[number]
