import type { CountryCode } from 'libphonenumber-js/max'

/** Where a number without a country code is dialled. */
export const DEFAULT_COUNTRY: CountryCode = 'NG'
