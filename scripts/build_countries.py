"""Write the embedded graph of countries: src/nodepiece/data/countries/{train,valid,test}.tsv.

    pip install countryinfo==1.0.1
    python scripts/build_countries.py

The facts are those of the package countryinfo (MIT, see NOTICE beside the files), with readable
names instead of codes and with its obvious errors fixed: only the tables below are ours.
Provinces are left out: with the one fact `Bayern province of Germany` each would be a leaf, and
all leaves of one country have the same anchors, distances and relations.

A fact says `Germany borders France`, `Germany has currency euro (EUR)`, `Berlin near Prague`.
Symmetric facts (`borders`, and `near`, which joins each capital with the three nearest capitals)
are stated in both directions, since a query may start from either side. Both directions are always
in the same split: with one of them in train, the other would follow trivially.

The split moves facts that follow from others, by neighbours, by region or by composition (a
country in a subregion that is part of a region). Capitals and the hierarchy of regions stay in
train, as does every fact that one of its nodes needs in order to keep MIN_TRAIN_FACTS.
The order in which facts are tried is that of a salted hash, not of a random number generator, so
the same files come out under every version of Python.
"""

import hashlib
import json
import math
from collections import Counter
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

Country = dict[str, Any]  # one file of countryinfo
Fact = tuple[str, str, str]  # head, relation, tail

FOLDER = Path(__file__).parent.parent / "src/nodepiece/data/countries"
SALT = "0"  # another salt, another split
HELD_OUT_SHARE = 0.05  # of the movable facts, for valid and for test each
MIN_TRAIN_FACTS = 3  # a node of a held-out fact keeps so many in train
NUM_NEAR_CAPITALS = 3
SYMMETRIC = ("borders", "near")
MOVABLE = (
    *SYMMETRIC,
    "has currency",
    "has language",
    "in calling zone",
    "in region",
    "in subregion",
    "in time zone",
)

# Duplicate files, states that no longer exist, and uninhabited places.
LEFT_OUT = {
    "Curaçao",  # again as curaçao
    "antarctica",
    "bouvet_island",
    "heard_island_and_mc_donald_islands",
    "holy_see_vatican_city",
    "netherlands_antilles",
    "palestine_state_of",
    "serbia_and_montenegro",
    "united_states_minor_outlying_islands",
}

RENAMED = {
    "Holy See (Vatican City State)": "Vatican City",
    "Republic of Macedonia": "North Macedonia",
    "Swaziland": "Eswatini",
    "The Bahamas": "Bahamas",
    "The Gambia": "Gambia",
    "Virgin Islands, British": "British Virgin Islands",
    "Virgin Islands, U.S.": "United States Virgin Islands",
}

# Errors and gaps of the source, by ISO code.
MENDED: dict[str, Country] = {
    "ABW": {"languages": ["nl", "pap"]},
    "AFG": {"languages": ["ps", "fa", "uz", "tk"]},
    "BDI": {"capital": "Gitega", "capital_latlng": [-3.43, 29.93]},
    "BES": {"capital": "Kralendijk", "capital_latlng": [12.14, -68.27]},
    "CHE": {"languages": ["de", "fr", "it", "rm"]},
    "GEO": {"timezones": ["UTC+04:00"]},
    "GMB": {"timezones": ["UTC"]},
    "KAZ": {"capital": "Astana"},
    "MYS": {"languages": ["ms"]},
    "NLD": {"timezones": ["UTC+01:00"]},
    "PHL": {"languages": ["en", "fil"]},
    "SRB": {"languages": ["sr"], "timezones": ["UTC+01:00"]},
    "VAT": {"capital": "Vatican City"},
    "VEN": {"timezones": ["UTC−04:00"]},
}

# A border counts if both sides state it; these are true although one side lacks them,
TRUE_THOUGH_ONE_SIDED = {
    frozenset(pair.split("-"))
    for pair in ("IRQ-KWT", "IND-MMR", "NPL-CHN", "PSE-ISR", "PSE-EGY", "PSE-JOR", "SDN-TCD")
}
OVER_WATER = {frozenset({"IND", "LKA"})}  # and this one is no border on land.

CURRENCIES = """
    AED UAE dirham, AFN Afghan afghani, ALL Albanian lek, AMD Armenian dram, AOA Angolan kwanza,
    ARS Argentine peso, AUD Australian dollar, AWG Aruban florin, AZN Azerbaijani manat,
    BAM convertible mark, BBD Barbadian dollar, BDT Bangladeshi taka, BGN Bulgarian lev,
    BHD Bahraini dinar, BIF Burundian franc, BMD Bermudian dollar, BND Brunei dollar,
    BOB boliviano, BRL Brazilian real, BSD Bahamian dollar, BTN Bhutanese ngultrum,
    BWP Botswana pula, BYN Belarusian rouble, BZD Belize dollar, CAD Canadian dollar,
    CDF Congolese franc, CHF Swiss franc, CLP Chilean peso, CNY Chinese yuan, COP Colombian peso,
    CRC Costa Rican colón, CUP Cuban peso, CVE Cape Verdean escudo, CZK Czech koruna,
    DJF Djiboutian franc, DKK Danish krone, DOP Dominican peso, DZD Algerian dinar,
    EGP Egyptian pound, ERN Eritrean nakfa, ETB Ethiopian birr, EUR euro, FJD Fijian dollar,
    FKP Falkland Islands pound, GBP pound sterling, GEL Georgian lari, GHS Ghanaian cedi,
    GIP Gibraltar pound, GMD Gambian dalasi, GNF Guinean franc, GTQ Guatemalan quetzal,
    GYD Guyanese dollar, HKD Hong Kong dollar, HNL Honduran lempira, HTG Haitian gourde,
    HUF Hungarian forint, IDR Indonesian rupiah, ILS Israeli shekel, INR Indian rupee,
    IQD Iraqi dinar, IRR Iranian rial, ISK Icelandic króna, JMD Jamaican dollar,
    JOD Jordanian dinar, JPY Japanese yen, KES Kenyan shilling, KGS Kyrgyz som,
    KHR Cambodian riel, KMF Comorian franc, KPW North Korean won, KRW South Korean won,
    KWD Kuwaiti dinar, KYD Cayman Islands dollar, KZT Kazakh tenge, LAK Lao kip,
    LBP Lebanese pound, LKR Sri Lankan rupee, LRD Liberian dollar, LSL Lesotho loti,
    LYD Libyan dinar, MAD Moroccan dirham, MDL Moldovan leu, MGA Malagasy ariary,
    MKD Macedonian denar, MMK Myanmar kyat, MNT Mongolian tögrög, MOP Macanese pataca,
    MRU Mauritanian ouguiya, MUR Mauritian rupee, MVR Maldivian rufiyaa, MWK Malawian kwacha,
    MXN Mexican peso, MYR Malaysian ringgit, MZN Mozambican metical, NAD Namibian dollar,
    NGN Nigerian naira, NIO Nicaraguan córdoba, NOK Norwegian krone, NPR Nepalese rupee,
    NZD New Zealand dollar, OMR Omani rial, PAB Panamanian balboa, PEN Peruvian sol,
    PGK Papua New Guinean kina, PHP Philippine peso, PKR Pakistani rupee, PLN Polish złoty,
    PYG Paraguayan guaraní, QAR Qatari riyal, RON Romanian leu, RSD Serbian dinar,
    RUB Russian rouble, RWF Rwandan franc, SAR Saudi riyal, SBD Solomon Islands dollar,
    SCR Seychellois rupee, SDG Sudanese pound, SEK Swedish krona, SGD Singapore dollar,
    SHP Saint Helena pound, SLE Sierra Leonean leone, SOS Somali shilling,
    SRD Surinamese dollar, SSP South Sudanese pound, STN São Tomé and Príncipe dobra,
    SVC Salvadoran colón, SYP Syrian pound, SZL Swazi lilangeni, THB Thai baht,
    TJS Tajikistani somoni, TMT Turkmenistan manat, TND Tunisian dinar, TOP Tongan paʻanga,
    TRY Turkish lira, TTD Trinidad and Tobago dollar, TWD New Taiwan dollar,
    TZS Tanzanian shilling, UAH Ukrainian hryvnia, UGX Ugandan shilling,
    USD United States dollar, UYU Uruguayan peso, UZS Uzbekistani soʻm, VES Venezuelan bolívar,
    VND Vietnamese đồng, VUV Vanuatu vatu, WST Samoan tālā, XAF Central African CFA franc,
    XCD Eastern Caribbean dollar, XOF West African CFA franc, XPF CFP franc, YER Yemeni rial,
    ZAR South African rand, ZMW Zambian kwacha
"""
REPLACED_CURRENCIES = {  # withdrawn since; None: a unit of account or gone without a successor
    **{"BYR": "BYN", "HRK": "EUR", "MRO": "MRU", "SLL": "SLE", "STD": "STN", "VEF": "VES"},
    **{"ZMK": "ZMW", "BOV": None, "CHE": None, "CHW": None, "CLF": None, "CUC": None},
    **{"USN": None, "USS": None, "UYI": None},
}

LANGUAGES = """
    af Afrikaans, am Amharic, ar Arabic, ay Aymara, az Azerbaijani, be Belarusian, bg Bulgarian,
    bi Bislama, bn Bengali, bs Bosnian, ca Catalan, ch Chamorro, cnr Montenegrin, cs Czech,
    da Danish, de German, dv Dhivehi, dz Dzongkha, el Greek, en English, es Spanish, et Estonian,
    fa Persian, ff Fula, fi Finnish, fil Filipino, fj Fijian, fo Faroese, fr French, ga Irish,
    gn Guarani, gv Manx, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole, hu Hungarian,
    hy Armenian, id Indonesian, is Icelandic, it Italian, ja Japanese, ka Georgian, kg Kongo,
    kk Kazakh, kl Greenlandic, km Khmer, ko Korean, ku Kurdish, ky Kyrgyz, la Latin,
    lb Luxembourgish, ln Lingala, lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy,
    mh Marshallese, mi Māori, mk Macedonian, mn Mongolian, ms Malay, mt Maltese, my Burmese,
    na Nauruan, nb Norwegian, nd Northern Ndebele, ne Nepali, nl Dutch, nn Norwegian, no Norwegian,
    nr Southern Ndebele, ny Chichewa, oc Occitan, pap Papiamento, pl Polish, ps Pashto,
    pt Portuguese, qu Quechua, rm Romansh, rn Kirundi, ro Romanian, ru Russian, rw Kinyarwanda,
    sg Sango, si Sinhala, sk Slovak, sl Slovene, sm Samoan, sn Shona, so Somali, sq Albanian,
    sr Serbian, ss Swazi, st Sotho, sv Swedish, sw Swahili, ta Tamil, tg Tajik, th Thai,
    ti Tigrinya, tk Turkmen, tn Tswana, to Tongan, tr Turkish, ts Tsonga, uk Ukrainian, ur Urdu,
    uz Uzbek, ve Venda, vi Vietnamese, xh Xhosa, zh Chinese, zu Zulu
"""


def main() -> None:
    countries = read_countries(files("countryinfo") / "data")
    kinds = (country_facts, region_facts, border_facts, near_capitals)
    facts = sorted(set().union(*(facts_of(countries) for facts_of in kinds)))
    splits = split_facts(facts)
    FOLDER.mkdir(exist_ok=True)
    for name, part in splits.items():
        text = "".join("\t".join(fact) + "\n" for fact in sorted(part))
        (FOLDER / f"{name}.tsv").write_bytes(text.encode())
        print(f"{name}: {len(part)} facts")
    print(f"{len({node for fact in facts for node in fact[::2]})} nodes")
    for relation, count in Counter(fact[1] for fact in facts).most_common():
        print(f"{count:6} {relation}")


def read_countries(folder: Traversable) -> list[Country]:
    """All countries, with errors fixed and renamed; the names of capitals are unique."""
    sources = [path for path in folder.iterdir() if path.name.endswith(".json")]
    countries = [
        fixed(json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(sources, key=lambda path: path.name)
        if path.name.removesuffix(".json") not in LEFT_OUT
    ]
    capitals = unambiguous_capitals(countries)
    return [
        country | {"capital": capital} for country, capital in zip(countries, capitals, strict=True)
    ]


def fixed(country: Country) -> Country:
    code, name = country["ISO"]["alpha3"], country["name"]
    return country | {"code": code, "name": RENAMED.get(name, name)} | MENDED.get(code, {})


def unambiguous_capitals(countries: list[Country]) -> list[str]:
    """Unique names of capitals, such as `Singapore (city)` and `Kingston (Jamaica)`."""
    country_names = {country["name"] for country in countries}
    num_same = Counter(country["capital"] for country in countries)
    capitals = []
    for country in countries:
        capital = country["capital"]
        if capital in country_names:
            capital = f"{capital} (city)"
        elif capital and num_same[capital] > 1:
            capital = f"{capital} ({country['name']})"
        capitals.append(capital)
    return capitals


def country_facts(countries: list[Country]) -> set[Fact]:
    """What a country has and where it is, one fact for each of the source's values."""
    languages, currencies = read_table(LANGUAGES), read_table(CURRENCIES)
    facts: set[Fact] = set()
    for country in countries:
        codes = {REPLACED_CURRENCIES.get(code, code) for code in listed(country, "currencies")}
        values = {
            "has capital": [country["capital"]],
            "has language": [languages[code] for code in listed(country, "languages")],
            "has currency": [f"{currencies[code]} ({code})" for code in codes if code],
            "in time zone": [time_zone(zone) for zone in listed(country, "timezones")],
            "in calling zone": [f"calling zone +{c[0]}" for c in listed(country, "callingCodes")],
            "in region": [country["region"]],
            "in subregion": regions_of(country)[1:],
        }
        for relation, tails in values.items():
            facts |= {(country["name"], relation, tail) for tail in tails if tail}
    return facts


def read_table(text: str) -> dict[str, str]:
    """{code: name} from "code name, code name"."""
    code_and_name = (entry.strip().split(" ", 1) for entry in text.split(","))
    return {code: " ".join(name.split()) for code, name in code_and_name}


def listed(country: Country, field: str) -> list[str]:
    """The values of a list that may be missing, null, or hold empty strings."""
    return [value for value in country.get(field) or [] if value]


def time_zone(zone: str) -> str:
    """`UTC-04:00` with a minus that is on the keyboard, and always with minutes."""
    zone = zone.replace("−", "-")
    return zone if ":" in zone or zone == "UTC" else zone + ":00"


def regions_of(country: Country) -> list[str]:
    """From the widest to the narrowest: Africa, Sub-Saharan Africa, Eastern Africa."""
    levels = (country.get(level) for level in ("region", "subregion", "intermediateregion"))
    return [region for region in levels if region]


def region_facts(countries: list[Country]) -> set[Fact]:
    facts: set[Fact] = set()
    for country in countries:
        regions = regions_of(country)
        facts |= {(part, "part of", whole) for whole, part in pairwise(regions)}
    return facts


def border_facts(countries: list[Country]) -> set[Fact]:
    names = {country["code"]: country["name"] for country in countries}
    stated = {
        (country["code"], other) for country in countries for other in listed(country, "borders")
    }
    facts: set[Fact] = set()
    for here, there in stated:
        pair = frozenset({here, there})
        is_agreed = (there, here) in stated or pair in TRUE_THOUGH_ONE_SIDED
        if is_agreed and pair not in OVER_WATER:
            facts |= both_ways(names[here], "borders", names[there])
    return facts


def near_capitals(countries: list[Country]) -> set[Fact]:
    """Join each capital with the few nearest to it, which gives islands neighbours too."""
    places = {
        country["capital"]: capital_place(country) for country in countries if country["capital"]
    }
    facts: set[Fact] = set()
    for here, place in places.items():
        others = sorted(
            (great_circle_km(place, places[other]), other) for other in places if other != here
        )
        for _, there in others[:NUM_NEAR_CAPITALS]:
            facts |= both_ways(here, "near", there)
    return facts


def capital_place(country: Country) -> list[float]:
    """Latitude and longitude of a capital; the middle of the country if the source is wrong.

    The source searched some capitals by name alone and found, for example, Jamestown in Virginia.
    """
    capital, middle = country["capital_latlng"], country.get("latlng")
    if not middle:
        return capital
    limit_km = max(1500.0, 0.9 * math.sqrt(country.get("area") or 0))
    return capital if great_circle_km(capital, middle) < limit_km else middle


def great_circle_km(here: list[float], there: list[float]) -> float:
    latitude, longitude = (math.radians(degrees) for degrees in here)
    other_latitude, other_longitude = (math.radians(degrees) for degrees in there)
    haversine = (
        math.sin((latitude - other_latitude) / 2) ** 2
        + math.cos(latitude) * math.cos(other_latitude)
        * math.sin((longitude - other_longitude) / 2) ** 2
    )  # fmt: skip
    return 2 * 6371 * math.asin(math.sqrt(haversine))


def both_ways(head: str, relation: str, tail: str) -> set[Fact]:
    return {(head, relation, tail), (tail, relation, head)}


def split_facts(facts: list[Fact]) -> dict[str, list[Fact]]:
    """train, valid and test; a node of a held-out fact keeps MIN_TRAIN_FACTS facts in train."""
    degree = Counter(node for fact in facts for node in fact[::2])
    movable = {
        tuple(sorted(both_ways(*fact))) if fact[1] in SYMMETRIC else (fact,)
        for fact in facts
        if fact[1] in MOVABLE
    }
    num_held_out = round(HELD_OUT_SHARE * sum(len(group) for group in movable))
    splits: dict[str, list[Fact]] = {"train": [], "valid": [], "test": []}
    for group in sorted(movable, key=salted_hash):
        emptier = min(("test", "valid"), key=lambda name: len(splits[name]))
        nodes = Counter(node for fact in group for node in fact[::2])
        keeps_enough = all(degree[node] - nodes[node] >= MIN_TRAIN_FACTS for node in nodes)
        if keeps_enough and len(splits[emptier]) < num_held_out:
            degree -= nodes
            splits[emptier].extend(group)
    held_out = {*splits["valid"], *splits["test"]}
    splits["train"] = [fact for fact in facts if fact not in held_out]
    return splits


def salted_hash(group: tuple[Fact, ...]) -> bytes:
    return hashlib.sha256(repr((SALT, group)).encode()).digest()


if __name__ == "__main__":
    main()
