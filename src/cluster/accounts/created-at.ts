import type { KV } from '@nats-io/kv'

/** When the accounts on the bus were made: where they were deleted and made again, it is another time. Rejects where there are none. */
export const createdAtOf = async (kv: KV): Promise<string> => `${(await kv.status()).streamInfo.created}`
