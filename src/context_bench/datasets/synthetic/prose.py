"""Filler prose: an endless, varied and grammatical stream of sentences without a single digit.

A paragraph stays with one topic. No sentence occurs twice in one stream until the stream is far longer than any
context, and two consecutive sentences never have the same form.
"""

from __future__ import annotations

from typing import NamedTuple

from context_bench.datasets.synthetic.building import Draw, Stock, phrases


class Topic(NamedTuple):
    """Phrases about one place: who did what, where, when and why, and in what circumstances."""

    who: tuple[str, ...]
    did: tuple[str, ...]
    where: tuple[str, ...]
    when: tuple[str, ...]
    why: tuple[str, ...]
    state: tuple[str, ...]


def _make_topic(who: str, did: str, where: str, when: str, why: str, state: str) -> Topic:
    return Topic(*map(phrases, (who, did, where, when, why, state)))


TOPICS: tuple[Topic, ...] = (
    _make_topic(
        who="""the ferry captain; the old net mender; a pair of dock hands; the pilot's daughter; the crew of the
        trawler; a visiting boatbuilder; the night watchman; the woman who sold rope; the young deckhand; the
        fishmonger; several oyster gatherers; the retired sailor""",
        did="""checked the mooring lines; scrubbed the deck with salt water; patched a torn sail; sorted the morning
        catch; coiled the wet ropes; watched the gulls circle; tarred the seams of a small sloop; hauled a dinghy up
        the slipway; swapped stories about past storms; hung the nets out to dry; studied the colour of the water;
        rowed out to the farthest buoy; carried crates of ice; oiled the rusty winch; waited for the fog to lift;
        listened to the halyards tapping""",
        where="""along the north quay; beside the fish market; under the breakwater; near the fuel dock; at the end of
        the pier; outside the chandlery; in the lee of the sea wall; by the slipway""",
        when="""before the tide turned; at first light; once the fog had thinned; while the wind held; late in the
        evening; after the ferry had left; on the calmest day of the week; as the swell died down""",
        why="""because the wind had gone round to the west; since the harbour would soon fill with visitors; as the
        weather was about to turn; because nobody else was willing; since the season was nearly over; as the tide
        would not wait; because the engine needed a rest; since the catch had been poor all week""",
        state="""the water lay flat and grey; a light drizzle hung over the boats; the smell of tar filled the air;
        the tide was already running out; every berth was taken; the gulls had fallen silent; a heavy swell rolled in
        from the open sea; the harbour lights were still burning""",
    ),
    _make_topic(
        who="""the head gardener; a neighbour with a wheelbarrow; the beekeeper; two eager volunteers; the retired
        teacher; the boy from the corner house; the seed merchant; the members of the allotment club; a patient
        grandmother; the landscape student; the woman in the straw hat; the orchard owner""",
        did="""pruned the climbing roses; turned the compost heap; tied the beans to their poles; thinned the young
        carrots; raked the gravel paths; gathered windfall apples; planted a row of leeks; mended the greenhouse
        door; carried water to the seedlings; argued about the best mulch; labelled the trays of herbs; covered the
        lettuce with fleece; sharpened the shears; cut back the brambles; trained a pear tree against the bricks;
        dug a trench for the potatoes""",
        where="""behind the glasshouse; in the walled garden; under the apple trees; next to the water butt; along the
        sunny border; between the raised beds; at the edge of the lawn; beside the potting shed""",
        when="""before the first frost; early in the spring; after a week of rain; in the cool of the morning; as soon
        as the soil had warmed; towards the end of summer; on a mild afternoon; when the blossom had fallen""",
        why="""because the slugs had been busy; since the ground was finally soft; as the forecast promised sunshine;
        because the hedge had grown too tall; since the bees needed flowers; as visitors were expected at the
        weekend; because last year's crop had failed; since there was compost to spare""",
        state="""the soil was dark and crumbly; bees hummed in the lavender; the paths were slippery with moss; the
        tomatoes had begun to ripen; a robin followed every spade; frost had silvered the grass; the hedges smelled
        of rain; the pond was covered in duckweed""",
    ),
    _make_topic(
        who="""the station master; the signalman; a party of hikers; the engine driver; the ticket clerk; the woman
        from the buffet car; a family with too many suitcases; the track inspector; the apprentice fireman; a
        commuter in a long coat; the travelling salesman; the guard""",
        did="""polished the brass lamps; waved a green flag; checked the couplings; read the timetable aloud; shovelled
        snow from the platform; warmed cold hands at the stove; repaired the signal wire; loaded sacks of mail; waited
        for the branch line train; leaned out of the carriage window; stamped a bundle of tickets; greased the points;
        counted the empty wagons; dozed against the luggage; tested the brakes; shared a flask of tea""",
        where="""on the upper platform; beside the water tower; at the mouth of the tunnel; in the waiting room; near
        the level crossing; halfway up the incline; by the goods shed; under the station clock""",
        when="""just before departure; during the long winter; as the express went by; after the thaw; shortly after
        dawn; while the engine took on water; at the busiest hour; when the line had been cleared""",
        why="""because the viaduct was under repair; since the last train had already gone; as the snow was drifting
        again; because the whistle had not sounded; since the valley line ran only in summer; as the connection was
        always late; because the rails had iced over; since the new carriages had arrived""",
        state="""steam drifted over the tracks; the valley was hidden in cloud; the rails shone in the low sun; the
        clock above the arch had stopped; snow lay deep in the cutting; the carriages were almost empty; a cold
        draught came through the tunnel; the timetable had changed again""",
    ),
    _make_topic(
        who="""the head librarian; a quiet scholar; the bookbinder; the volunteers at the desk; a student of old maps;
        the translator; the evening porter; the curator; an absent-minded professor; the children's storyteller; the
        restorer; a reader in a tweed jacket""",
        did="""dusted the upper shelves; catalogued a box of letters; repaired a broken spine; looked up a forgotten
        poem; copied a faded inscription; returned a stack of novels; compared the early editions; whispered over a
        curious map; climbed the rolling ladder; drew the heavy curtains; searched the index cards; unrolled a long
        parchment; wrote a note in pencil; pressed the loose pages flat; closed the reading room; found a pressed
        flower between the pages""",
        where="""in the reading room; among the atlases; at the long oak table; near the periodicals; in the basement
        stacks; beneath the stained glass; beside the card catalogue; on the gallery""",
        when="""before opening time; through most of the winter; on a rainy afternoon; long after closing; between two
        lectures; at the start of term; while the radiators clanked; during the yearly inventory""",
        why="""because the index was incomplete; since the exhibition was about to open; as the paper had grown
        brittle; because a reader had asked for it; since the roof had leaked again; as no copy existed elsewhere;
        because the handwriting was hard to read; since the shelves were overfull""",
        state="""the room smelled of old paper; rain ran down the tall windows; the lamps gave a warm light; hardly a
        page rustled; the catalogue was badly out of date; dust floated in the sunbeams; the reading room was full;
        the ladder creaked at every step""",
    ),
    _make_topic(
        who="""the baker; the pastry cook; a hungry apprentice; the miller's son; the café owner; the woman who tasted
        every sauce; the dishwasher; a guest from the mountains; the market trader; the cheesemaker; the head waiter;
        both of the kitchen porters""",
        did="""kneaded the dough; stirred a pot of lentil soup; whisked the egg whites; weighed the flour; sliced a
        round of soft cheese; tasted the broth; scrubbed the copper pans; lit the wood oven; rolled out the pastry;
        chopped a heap of parsley; wrote the menu on a slate; roasted the hazelnuts; peeled a basket of quinces; set
        the loaves out to cool; sharpened the long knives; folded the linen napkins""",
        where="""in the back kitchen; beside the bread oven; at the marble counter; near the pantry door; behind the
        café; under the hanging pans; at the corner table; in the cellar""",
        when="""before the first customers came; all through the morning; on market day; while the kettle boiled; just
        before lunch; after the last guest had gone; at the height of the season; as the crust turned brown""",
        why="""because the yeast was slow that day; since guests were expected; as the oven had cooled too quickly;
        because the recipe had been lost; since fresh butter had arrived; as the flour was unusually coarse; because
        the soup needed more time; since everyone was hungry""",
        state="""the kitchen was thick with steam; the bread had risen well; the windows had misted over; a smell of
        cinnamon came up the stairs; the pantry shelves were nearly bare; the oven ticked as it cooled; the market had
        run out of lemons; the soup was still too hot""",
    ),
    _make_topic(
        who="""the astronomer; the night assistant; a group of schoolchildren; the weather observer; the instrument
        maker; the caretaker of the dome; a guest lecturer; the amateur stargazers; the radio engineer; the professor's
        niece; the shepherd from the next valley; the mountaineer""",
        did="""opened the shutters of the dome; adjusted the eyepiece; sketched the rings of a planet; waited for the
        clouds to part; noted the direction of the wind; cleaned the great mirror; explained how comets move; wrapped
        up in blankets; recorded a faint flash; pointed out the brightest star; calibrated the barometer; made a pot
        of strong coffee; followed a satellite across the sky; read the rain gauge; wound the old chronometer; pinned
        a chart to the wall""",
        where="""on the observatory roof; inside the dome; beside the weather mast; at the top of the ridge; in the
        control room; near the sundial; on the wooden platform; by the rain gauge""",
        when="""around midnight; on the clearest night of autumn; before moonrise; as the sky darkened; after the front
        had passed; during the eclipse; until the stars faded; in the coldest hours""",
        why="""because the air was unusually still; since the moon had not yet risen; as a storm was forecast; because
        the lens had fogged; since the comet would not return soon; as the batteries were low; because the clouds were
        breaking; since the new chart was ready""",
        state="""the sky was perfectly clear; a thin haze covered the horizon; the dome turned without a sound; frost
        glittered on the railing; the wind had dropped at last; the stars looked close enough to touch; the valley
        lay in darkness; thunder muttered far away""",
    ),
    _make_topic(
        who="""the cabinetmaker; the glassblower; a travelling tinker; the potter; the clockmaker's apprentice; the
        weaver; a customer with a broken chair; the blacksmith; the sign painter; the saddler; the violin maker; the
        woman who ran the print shop""",
        did="""planed a plank of cherry wood; glued the loose joints; fired the kiln; threaded the loom; hammered a
        hinge into shape; mixed a pot of varnish; turned a bowl on the lathe; swept up the shavings; carved a row of
        leaves; sanded the tabletop; stretched a piece of leather; inked the press; tuned a new fiddle; hung the tools
        back in order; drew a plan on brown paper; tested the edge of a chisel""",
        where="""at the workbench; beside the forge; in the back of the shop; under the skylight; next to the kiln; in
        the drying room; by the open window; among the stacked timber""",
        when="""for most of the afternoon; before the varnish set; while the glue dried; as the kiln cooled; late into
        the night; on the last day of the fair; whenever orders were slow; after the delivery had come""",
        why="""because the wood was still damp; since the order was urgent; as the pattern had to match; because the
        clay had cracked; since good leather was scarce; as the customer was in no hurry; because the old hinge had
        snapped; since the light was best there""",
        state="""sawdust covered the floor; the forge glowed in the corner; the varnish was not yet dry; every shelf
        was crowded with jars; the kiln had been burning since dawn; the loom stood idle; curls of wood lay everywhere;
        the shop smelled of beeswax""",
    ),
    _make_topic(
        who="""the forester; a pair of birdwatchers; the warden; the charcoal burner; a lost walker; the mushroom
        hunters; the botanist; the trail crew; a curious child; the wildlife painter; the woman with the spaniel; the
        surveyor""",
        did="""followed the stream uphill; marked the fallen trees; heard an owl call; cleared the blocked path;
        sketched a patch of ferns; picked a basket of chanterelles; rested on a mossy log; repaired the
        footbridge; found the tracks of a badger; measured the girth of an oak; crossed the clearing; collected
        beech nuts; watched a deer drink; lit a small fire; took shelter from the rain; hung a nesting box""",
        where="""in the beech wood; beside the stream; along the ridge path; near the old quarry; at the edge of the
        clearing; under the tall pines; by the footbridge; in the bracken""",
        when="""in the late autumn; after a night of wind; at dusk; when the leaves had turned; through the misty
        morning; before the birds fell silent; during the dry spell; as the shadows lengthened""",
        why="""because the path had washed away; since the nests were empty; as the light was fading; because the ground
        was too wet; since a storm had brought down the pines; as the stream was running high; because the map was out
        of date; since the deer had moved on""",
        state="""the wood was very still; mist clung to the lower slopes; the stream ran fast and clear; acorns crunched
        underfoot; the bracken had turned brown; a woodpecker drummed somewhere; the path was thick with leaves; the
        air smelled of pine""",
    ),
)

ASIDES = phrases(
    """Nobody minded.; It was a quiet day.; Time passed slowly.; The talk turned to other things.; There was plenty left
    to do.; Nothing more was said about it.; That was usual.; Then it rained.; The work went on all the same.;
    Everyone agreed.; It made little difference in the end.; So the day went by.; The light was good.; Hardly
    anyone noticed.; People were in a cheerful mood.; A dog barked.; Nobody could remember it otherwise.;
    Somebody laughed.; It had always been done that way.; Opinions differed.; The rest could wait until morning.;
    Silence fell."""
)
"""Short sentences that suit any topic; their various lengths let a text be closed at an exact size."""


FORMS = phrases(
    """{who} {did} {where} {when}; {when}, {who} {did}; {who} {did}, {why}; {who} {did} while {other} {also}; {state},
    so {who} {did} {where}; {where}, {who} {did} and {also}; {state}, and {who} {did}; {who} {did} {when}, {why};
    {when}, {state}; although {state}, {who} {did} {where}; {who} and {other} {did}; {why}, {who} {did} {when};
    it was {where} that {who} {did}; {who} {did} first and then {also}; {other} remembered later how {who} {did}
    {where}; {state} when {who} {did}"""
)


class Prose:
    """A stream of sentences, drawn from `draw`."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._seen: set[str] = set()
        self._topic: Topic = draw.pick(TOPICS)
        self._form = -1
        self._left = 0

    def sentence(self) -> str:
        """Return the next sentence, with its capital and its full stop."""
        for _ in range(8):  # a repeated sentence is rare: the phrases combine in millions of ways
            form = (self._form + self._draw.between(1, len(FORMS) - 1)) % len(FORMS)
            text = self._compose(FORMS[form])
            if text not in self._seen:
                break
        self._form = form
        self._seen.add(text)
        return text

    def unit(self) -> str:
        """Return the next sentence with its separator before it: a space, or a paragraph break."""
        if self._left == 0:
            self._left = self._draw.between(3, 7)
            self.turn()
            return "\n\n" + self.sentence()
        self._left -= 1
        return " " + self.sentence()

    def turn(self) -> None:
        self._topic = self._draw.pick([topic for topic in TOPICS if topic is not self._topic])

    def aside(self) -> str:
        """Return a short sentence after a space."""
        return " " + self._draw.pick(ASIDES)

    def _compose(self, form: str) -> str:
        draw, topic = self._draw, self._topic
        who, other = draw.sample(topic.who, 2)
        did, also = draw.sample(topic.did, 2)
        drawn = {name: draw.pick(getattr(topic, name)) for name in ("where", "when", "why", "state")}
        text = form.format(who=who, other=other, did=did, also=also, **drawn)
        return text[0].upper() + text[1:] + "."


def prose_stock(prose: Prose) -> Stock:
    """Return `prose` as a stock of filler, for contexts that contain only prose."""
    return Stock(prose.unit, prose.aside, ".", lambda units: "".join(units).strip())
