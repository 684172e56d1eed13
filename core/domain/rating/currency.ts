/** The currency of every amount. Minor units are its hundredths. */
export const CURRENCY = 'NGN' as const
