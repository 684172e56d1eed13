import type { AlertKind } from './types.ts'

const OF_MONEY: readonly AlertKind[] = ['balance_low', 'spend_daily', 'spend_monthly']

/** Reports whether a role may see alerts of a kind. Those about balances and budgets need access to billing. */
export const mayBeSeen = (kind: AlertKind, role: string): boolean =>
  !OF_MONEY.includes(kind) || role === 'org:admin' || role === 'org:billing'
