import type { AlertKind } from './types.ts'

const OF_MONEY: readonly AlertKind[] = ['balance_low', 'spend_daily', 'spend_monthly']

/** Reports whether alerts of a kind are about balances and budgets, which need access to billing. */
export const isOfMoney = (kind: AlertKind): boolean => OF_MONEY.includes(kind)

/** Reports whether a role may see alerts of a kind. */
export const mayBeSeen = (kind: AlertKind, role: string): boolean =>
  role === 'org:admin' || (role === 'org:billing') === isOfMoney(kind)

/** Reports whether alerts of a kind are sent by e-mail to the members of a role: they can do something about it. */
export const isSentTo = (kind: AlertKind, role: string): boolean => role !== 'org:viewer' && mayBeSeen(kind, role)
