/** Of every amount; minor units are its hundredths. */
export const CURRENCY = 'NGN' as const
