import type { CountryCode } from 'libphonenumber-js/max'

/** The country of numbers without a country code. */
export const DEFAULT_COUNTRY: CountryCode = 'NG'
