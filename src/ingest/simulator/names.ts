import type { Random } from './random.ts'

// biome-ignore format: a word list reads best dense
const MANNERS = ['Turbo', 'Sleepy', 'Cosmic', 'Based', 'Tiny', 'Grumpy', 'Quantum', 'Lucky', 'Salty', 'Golden', 'Neon', 'Rusty', 'Smol', 'Mega', 'Zen', 'Chubby', 'Feral', 'Pixel', 'Soggy', 'Royal', 'Sneaky', 'Moody', 'Spicy', 'Frozen', 'Wobbly', 'Dapper', 'Hyper', 'Lazy', 'Mystic', 'Crispy', 'Invisible', 'Retired']
// biome-ignore format: a word list reads best dense
const CREATURES = ['Otter', 'Badger', 'Noodle', 'Pigeon', 'Walrus', 'Gecko', 'Waffle', 'Hamster', 'Toad', 'Llama', 'Capybara', 'Goblin', 'Wizard', 'Pickle', 'Raccoon', 'Penguin', 'Turnip', 'Yeti', 'Moose', 'Biscuit', 'Squid', 'Possum', 'Dumpling', 'Ferret', 'Narwhal', 'Kiwi', 'Mushroom', 'Axolotl', 'Gnome', 'Tapir', 'Wombat', 'Robot', 'Parrot', 'Beaver', 'Quokka', 'Lobster', 'Potato', 'Hedgehog', 'Sloth', 'Crab']
const ENDINGS = ['', '', '', '', ' Coin', ' AI', ' Inu', ' DAO', ' Club', ' 2.0', ' Cash', ' Classic']
const CLAIMS = [
  'No roadmap, only vibes.',
  'The community took over after the first hour.',
  'Fair launch, no presale, no team tokens.',
  'Born in a group chat at three in the morning.',
  'Streaming every day until it graduates.',
  'A serious experiment in not being serious.',
  'For everyone who missed the last one.',
  'The mascot is real and lives in a garden.',
]

export interface TokenWords {
  name: string
  symbol: string
  description: string
  website: string | null
  twitter: string | null
  telegram: string | null
}

const WEBSITE_SHARE = 0.45
const TWITTER_SHARE = 0.7
const TELEGRAM_SHARE = 0.4
const SYMBOL_CHARS_MAX = 8

/** The URI of a token's image, under .example, which nobody can own (RFC 6761). */
export const makeImageUri = (mint: string): string => `https://images.simulated.example/${mint}.png`

/**
 * Invents the texts of one new token, which say that it is simulated. `number` keeps the addresses of tokens with the same name
 * apart.
 */
export function inventWords(random: Random, number: number): TokenWords {
  const manner = random.pick(MANNERS)
  const creature = random.pick(CREATURES)
  const ending = random.pick(ENDINGS)
  const slug = `${manner}-${creature}-${number}`.toLowerCase()
  return {
    name: `${manner} ${creature}${ending}`,
    symbol: inventSymbol(random, manner, creature),
    description: `Simulated token, not a real asset. ${random.pick(CLAIMS)}`,
    website: random.chance(WEBSITE_SHARE) ? `https://${slug}.simulated.example` : null,
    twitter: random.chance(TWITTER_SHARE) ? `https://x.simulated.example/${slug}` : null,
    telegram: random.chance(TELEGRAM_SHARE) ? `https://t.simulated.example/${slug}` : null,
  }
}

function inventSymbol(random: Random, manner: string, creature: string): string {
  const both = manner.slice(0, 2 + random.below(2)) + creature.slice(0, 3)
  return (random.chance(0.6) ? creature : both).slice(0, SYMBOL_CHARS_MAX).toUpperCase()
}
